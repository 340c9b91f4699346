#pragma once

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "types/numeric.h"
#include "types/wide_integer.h"

/// Numbers n / 10^scale of more digits than Numeric holds, on the way to one.
namespace nam {

inline unsigned __int128 Magnitude128(__int128 n) {
  return n < 0 ? -static_cast<unsigned __int128>(n) : static_cast<unsigned __int128>(n);
}

inline Numeric NumericOf(bool negative, unsigned __int128 magnitude, int scale) {
  const auto digits = static_cast<__int128>(magnitude);
  return {negative ? -digits : digits, static_cast<uint8_t>(scale)};
}

/// n / 10^scale to `wanted` decimals, or to as many as fit, half away from zero. Either scale may be of any
/// size, `scale` negative, too.
template <int kWords>
std::optional<Numeric> RoundWide(bool negative, const Wide<kWords>& n, int scale, int wanted) {
  wanted = std::min(wanted, kMaxNumericScale);
  if (n.zero()) return Numeric{0, static_cast<uint8_t>(wanted)};
  const int digits = DigitsOf(n), whole = digits - scale;
  if (whole > kMaxNumericDigits) return std::nullopt;
  wanted = std::min(wanted, kMaxNumericDigits - whole);
  if (wanted >= scale) return NumericOf(negative, n.low() * WidePowerOfTen<4>(wanted - scale).low(), wanted);
  const int dropped = scale - wanted;
  if (dropped > digits) return Numeric{0, static_cast<uint8_t>(wanted)};
  const Wide<kWords> power = WidePowerOfTen<kWords>(dropped);
  const WideQuotient<kWords> division = Divide(n, power);
  unsigned __int128 out = division.quotient.low();
  if (division.remainder >= power - division.remainder) ++out;
  if (out < WidePowerOfTen<4>(kMaxNumericDigits).low()) return NumericOf(negative, out, wanted);
  if (wanted == 0) return std::nullopt;
  return NumericOf(negative, out / 10, wanted - 1);
}

/// The first digits to the base 10,000, by which PostgreSQL estimates the size of a number.
struct FirstDigits {
  int weight = 0;  // the first digit counts 10000^weight
  int first = 0;
  int second = 0;
};

template <int kWords>
FirstDigits FirstDigitsOf(const Wide<kWords>& n, int scale) {
  if (n.zero()) return {};
  const int exponent = DigitsOf(n) - 1 - scale;
  const int weight = (exponent >= 0 ? exponent : exponent - 3) / 4;
  const int shift = scale + 4 * (weight - 1);  // leaves both digits before the point
  const auto both = static_cast<int>(shift >= 0 ? Divide(n, WidePowerOfTen<kWords>(shift)).quotient.words[0]
                                                : (n * WidePowerOfTen<kWords>(-shift)).words[0]);
  return {weight, both / 10000, both % 10000};
}

/// The decimals of a quotient: at least 16 significant digits, as estimated by the first ones.
inline int QuotientScale(const FirstDigits& a, const FirstDigits& b, int scale_a, int scale_b) {
  const int weight = a.weight - b.weight - (a.first <= b.first ? 1 : 0);
  return std::min(std::max({16 - 4 * weight, scale_a, scale_b}), 1000);
}

/// (a / 10^scale_a) / (b / 10^scale_b) to `wanted` decimals, or to as many as fit. b is not 0.
template <int kWords>
std::optional<Numeric> DivideWide(bool negative, const Wide<kWords>& a, int scale_a, const Wide<kWords>& b,
                                  int scale_b, int wanted) {
  wanted = std::min(wanted, kMaxNumericScale);
  if (a.zero()) return Numeric{0, static_cast<uint8_t>(wanted)};
  // The quotient's whole part has `whole` digits, or one more. One decimal more than fits decides how to
  // round, whatever follows it.
  const int whole = (DigitsOf(a) - scale_a) - (DigitsOf(b) - scale_b);
  if (whole > kMaxNumericDigits) return std::nullopt;
  const int decimals = std::min(wanted, kMaxNumericDigits - whole) + 1;
  const int shift = decimals - scale_a + scale_b;
  const Wide<kWords> power = WidePowerOfTen<kWords>(std::abs(shift));
  const Wide<kWords> quotient = Divide(shift >= 0 ? a * power : a, shift >= 0 ? b : b * power).quotient;
  return RoundWide(negative, quotient, decimals, wanted);
}

/// The root of n / 10^scale to `wanted` decimals, or to as many as fit.
template <int kWords>
std::optional<Numeric> RootOfWide(const Wide<kWords>& n, int scale, int wanted) {
  wanted = std::min(wanted, kMaxNumericScale);
  if (n.zero()) return Numeric{0, static_cast<uint8_t>(wanted)};
  const int exponent = DigitsOf(n) - scale;
  const int whole = exponent > 0 ? (exponent + 1) / 2 : exponent / 2;
  // One decimal more than fits decides how to round, whatever follows it.
  const int decimals = std::min(wanted, kMaxNumericDigits - whole) + 1;
  if (decimals <= 0) return std::nullopt;
  const int shift = 2 * decimals - scale;
  const Wide<kWords> power = WidePowerOfTen<kWords>(std::abs(shift));
  return RoundWide(false, SquareRootOf(shift >= 0 ? n * power : Divide(n, power).quotient), decimals, wanted);
}

}  // namespace nam
