#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam::sql {

/// The regular expression that matches like SIMILAR TO with this pattern. `escape` is one character, or
/// empty: none. 0A000 for the separators that only SUBSTRING knows.
absl::StatusOr<std::string> SimilarPattern(std::string_view pattern, std::string_view escape, int position);

/// The regular expression for SUBSTRING's pattern, whose one group is the part between the separators (the
/// escape and `"`); without separators it is the whole text. 2200C unless there are none or two of them.
absl::StatusOr<std::string> SimilarParts(std::string_view pattern, std::string_view escape, int position);

}  // namespace nam::sql
