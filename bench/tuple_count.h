#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::bench {

/// Numbers of tuples and groups as options have them: `16M`, `1K`, `1000`. K is 1,024 and M its square, as in
/// Balkesen's workloads. INVALID_ARGUMENT, with the option's name, for others than 1 to `most`.
absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most);
/// `16M`, `1K`; digits for what is no multiple.
std::string CountLabel(uint64_t count);

}  // namespace nam::bench
