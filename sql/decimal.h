#pragma once

#include <optional>

namespace nam::sql {

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

}  // namespace nam::sql
