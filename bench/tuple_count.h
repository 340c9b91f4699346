#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::bench {

/// Parses numbers of tuples and groups: `16M`, `1K`, `1000`. K is 1,024 and M its square, as in Balkesen's
/// workloads. INVALID_ARGUMENT, with the option's name, unless they are 1 to `most`.
absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most);
/// `16M`, `1K`; plain digits if it is not a multiple.
std::string CountLabel(uint64_t count);

}  // namespace nam::bench
