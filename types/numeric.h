#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Arithmetic of numbers that carry their own scale, with PostgreSQL's results in digits and scale. If the
/// digits or the scale run out, the scale yields: the result is rounded half away from zero to as many
/// decimals as fit. Empty (or 22003) only if the whole part has more than 36 digits.
namespace nam {

inline constexpr int kMaxNumericDigits = 36;
inline constexpr int kMaxNumericScale = 38;

/// digits / 10^scale, |digits| < 10^36, scale ≤ 38. The operands of + - and * may be decimals: |digits| <
/// 10^38.
struct Numeric {
  __int128 digits = 0;
  uint8_t scale = 0;
  /// Of digits and scale: 1.0 differs from 1.00. CompareNumerics compares values.
  bool operator==(const Numeric&) const = default;
};

/// One value's 128 bits: `digits << 6 | scale`.
__int128 PackNumeric(const Numeric& number);
/// 0 for a word that is no number's, as in damaged memory.
Numeric UnpackNumeric(__int128 word);
/// True if it is the word of a number within bounds.
bool IsNumericWord(__int128 word);

/// In the order of the values; equal for equal values, whatever their scales. Its magnitude is below 2^127.
__int128 NumericKey(const Numeric& number);
/// The number of this key and scale; empty if there is none, as in damaged memory.
std::optional<Numeric> NumericOfKey(__int128 key, int scale);
/// 17 bytes: the key, ordered as bytes, and the scale.
std::string OrderedNumericBytes(const Numeric& number);
/// Reverses OrderedNumericBytes; empty if the bytes are no number's.
std::optional<Numeric> NumericOfOrderedBytes(std::string_view bytes);

/// digits / 10^scale made to fit; `digits` of any size, scale ≥ 0 of any size.
std::optional<Numeric> FitNumeric(__int128 digits, int scale);

std::optional<Numeric> AddNumerics(const Numeric& a, const Numeric& b);
std::optional<Numeric> SubtractNumerics(const Numeric& a, const Numeric& b);
std::optional<Numeric> MultiplyNumerics(const Numeric& a, const Numeric& b);
/// At least 16 significant digits, and at least the decimals of both. b is not 0.
std::optional<Numeric> DivideNumerics(const Numeric& a, const Numeric& b);
/// The sign of `a`, as C's remainder. b is not 0.
std::optional<Numeric> ModuloNumerics(const Numeric& a, const Numeric& b);
/// The exact quotient's whole part. b is not 0.
std::optional<Numeric> WholeQuotientOfNumerics(const Numeric& a, const Numeric& b);
/// -1, 0 or 1, by value.
int CompareNumerics(const Numeric& a, const Numeric& b);

/// To `scale` decimals, half away from zero; below 0: to tens, hundreds, …
std::optional<Numeric> RoundNumeric(const Numeric& a, int scale);
/// Towards zero.
std::optional<Numeric> TruncNumeric(const Numeric& a, int scale);
Numeric FloorNumeric(const Numeric& a);
Numeric CeilNumeric(const Numeric& a);
Numeric AbsNumeric(const Numeric& a);
Numeric NegateNumeric(const Numeric& a);
/// -1, 0 or 1 with scale 0.
Numeric SignNumeric(const Numeric& a);
/// Without zeros at the end of its decimals.
Numeric TrimScaleNumeric(const Numeric& a);

/// Rounded to the decimal's scale (0 … 38); empty beyond 38 digits.
std::optional<__int128> NumericToDecimal(const Numeric& a, int scale);

/// Parses `digits[.digits][e±digits]` with an optional sign and surrounding blanks; the scale is the number
/// of decimals written, less the exponent. As ParseNumeric: INVALID_ARGUMENT if it is not a number,
/// OUT_OF_RANGE if its whole part has more than 36 digits; neither has a SQLSTATE of its own.
absl::StatusOr<Numeric> ParseNumericText(std::string_view text);
/// With exactly `scale` decimals.
std::string NumericText(const Numeric& number);

/// Of a double's first 15 significant digits, of a real's 6; the scale is the shortest. Empty for NaN,
/// infinities and beyond 36 digits.
std::optional<Numeric> NumericOfDouble(double x);
std::optional<Numeric> NumericOfReal(float x);
/// The nearest double.
double NumericToDouble(const Numeric& number);

/// Limbs for sums that do not depend on order: number · 10^38 = limb 0 + limb 1 · 2^84 + limb 2 · 2^168. All
/// but the last are in 0 … 2^84 - 1, the last has the sign. Each limb of 2^42 numbers may be summed in 128
/// bits.
inline constexpr int kNumericLimbs = 3, kNumericSquareLimbs = 6, kNumericLimbBits = 84;
__int128 NumericLimb(const Numeric& number, int i);
/// Likewise of the square · 10^76; the last limb is not negative.
__int128 NumericSquareLimb(const Numeric& number, int i);
/// The number whose limbs, or sums of limbs, these are; `scale`: the largest of the summands.
std::optional<Numeric> NumericOfLimbs(const __int128 limbs[kNumericLimbs], int scale);

/// Limbs for sums of decimals of one scale: digits = limb 0 + limb 1 · 2^64. The first is in 0 … 2^64 - 1,
/// the second has the sign. Each limb of 2^62 numbers may be summed in 128 bits.
inline constexpr int kDecimalLimbs = 2;
inline __int128 DecimalLimb(__int128 digits, int i) {
  return i == 0 ? static_cast<__int128>(static_cast<uint64_t>(digits)) : digits >> 64;
}
/// The number of which these are the limbs, or sums of limbs, at most at this scale.
std::optional<Numeric> NumericOfDecimalLimbs(const __int128 limbs[kDecimalLimbs], int scale);

/// The mean of `count` > 0 numbers of at most `scale` decimals, by the sums of their limbs.
absl::StatusOr<Numeric> NumericAverage(const __int128 sums[kNumericLimbs], int scale, int64_t count);
/// Likewise of decimals: `sum` / 10^scale, of up to 38 digits.
absl::StatusOr<Numeric> DecimalAverage(__int128 sum, int scale, int64_t count);
/// Likewise by the sums of the decimals' limbs.
absl::StatusOr<Numeric> DecimalAverage(const __int128 sums[kDecimalLimbs], int scale, int64_t count);
/// The variance, or with `root` the standard deviation, of a sample (count > 1) or a population (count > 0).
absl::StatusOr<Numeric> NumericVariance(const __int128 sums[kNumericLimbs],
                                        const __int128 squares[kNumericSquareLimbs], int scale, int64_t count,
                                        bool sample, bool root);
/// Likewise of decimals: `sum` / 10^scale, `squares` / 10^(2 · scale).
absl::StatusOr<Numeric> DecimalVariance(__int128 sum, __int128 squares, int scale, int64_t count, bool sample,
                                        bool root);
/// Likewise by sums of 192 and 320 bits in two's complement, the lowest word first.
absl::StatusOr<Numeric> DecimalVariance(const std::array<uint64_t, 3>& sum,
                                        const std::array<uint64_t, 5>& squares, int scale, int64_t count,
                                        bool sample, bool root);

/// With PostgreSQL's errors: 2201F for powers of zero and negative numbers and roots of the latter, 2201E for
/// logarithms, 22012 for a logarithm to the base 1, 22003.
absl::StatusOr<Numeric> NumericPower(const Numeric& base, const Numeric& exponent, int position = -1);
absl::StatusOr<Numeric> NumericExp(const Numeric& a, int position = -1);
absl::StatusOr<Numeric> NumericLn(const Numeric& a, int position = -1);
absl::StatusOr<Numeric> NumericLog(const Numeric& base, const Numeric& a, int position = -1);
absl::StatusOr<Numeric> NumericSqrt(const Numeric& a, int position = -1);

}  // namespace nam
