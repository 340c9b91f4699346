#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "types/value.h"

namespace nam {

/// Exact arithmetic on numbers n / 10^scale of at most 38 digits, scales 0 … 38. Empty if the exact result
/// has more digits; intermediate results may have more.

/// True if n has at most 38 digits.
bool FitsDecimal(__int128 n);

/// Converts to another scale; rounds half away from zero when reducing it.
std::optional<__int128> Rescale(__int128 n, int from, int to);

/// a + b at the larger scale.
std::optional<__int128> AddDecimals(__int128 a, int scale_a, __int128 b, int scale_b);

/// a · b at the sum of the scales.
std::optional<__int128> MultiplyDecimals(__int128 a, __int128 b);

/// Parses `digits[.digits][e±digits]` with an optional sign and surrounding blanks: an integer if written as
/// one, else a decimal of the text's own scale. OUT_OF_RANGE beyond 38 digits, INVALID_ARGUMENT if it is not
/// a number.
absl::StatusOr<Value> ParseNumeric(std::string_view text);

/// The same; of more than 38 digits, as many decimals as a numeric holds (types/numeric.h). OUT_OF_RANGE only
/// if the whole part is too long.
absl::StatusOr<Value> ParseRounded(std::string_view text);

/// The number of decimals in the text; 0 if it is not a number.
uint8_t ScaleOfText(std::string_view text);

}  // namespace nam
