#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nam {

/// One setting of a configuration file:
///
///     catalog = "db1:7000"        # section {}: for every command that has --catalog
///     [ssb.load]                  # section {"ssb", "load"}: for `nam ssb load`
///     scale-factor = 10
struct ConfigEntry {
  std::vector<std::string> section;
  std::string key;
  std::vector<std::string> values;  // several for an array
  std::string where;                // `nam.toml:3:1`, for messages
};

/// Reads TOML. NOT_FOUND, or INVALID_ARGUMENT with the position of the error.
absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path);

}  // namespace nam
