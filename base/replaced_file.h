#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Files that are on disk when it is said so.
namespace nam {

/// A file could not be written, for this error of the system: RESOURCE_EXHAUSTED if the disk is full,
/// else INTERNAL.
absl::Status WriteError(const std::string& message, int error);

/// Puts a file of this user alone in the place of `name` in the directory, in one step: the new one is on
/// disk once it returned OK, the former one is there otherwise.
absl::Status ReplacePrivateFile(int directory, const std::string& name, std::string_view bytes,
                                const std::string& what);

}  // namespace nam
