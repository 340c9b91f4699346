#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "types/value.h"

namespace nam {

/// Exact arithmetic on numbers n / 10^scale of at most 38 digits, scales 0 … 38. Nothing when the exact
/// result has more digits; intermediate results may.

/// Whether n has at most 38 digits.
bool FitsDecimal(__int128 n);

/// To another scale, rounded half away from zero when it is smaller.
std::optional<__int128> Rescale(__int128 n, int from, int to);

/// a + b at the larger scale.
std::optional<__int128> AddDecimals(__int128 a, int scale_a, __int128 b, int scale_b);

/// a · b at the sum of the scales.
std::optional<__int128> MultiplyDecimals(__int128 a, __int128 b);

/// a / b at `scale` (at least scale_a), rounded half away from zero. b is not 0.
std::optional<__int128> DivideDecimals(__int128 a, int scale_a, __int128 b, int scale_b, int scale);

/// Without the blanks around it, which no number's or boolean's text minds.
std::string_view TrimBlanks(std::string_view text);

/// `digits[.digits][e±digits]` with an optional sign and blanks around: an integer if it is written as one,
/// else a decimal of the text's own scale. OUT_OF_RANGE beyond 38 digits, INVALID_ARGUMENT if it is no
/// number.
absl::StatusOr<Value> ParseNumeric(std::string_view text);

/// The decimals that the text writes; 0 if it is no number.
uint8_t ScaleOfText(std::string_view text);

}  // namespace nam
