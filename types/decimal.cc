#include "types/decimal.h"

#include <algorithm>

#include "base/check.h"
#include "types/characters.h"
#include "types/numeric.h"
#include "types/value.h"

namespace nam {
namespace {

using Unsigned = unsigned __int128;

Unsigned Magnitude(__int128 n) {
  return n < 0 ? -static_cast<Unsigned>(n) : static_cast<Unsigned>(n);
}

/// 10^38 - 1, the largest magnitude. Twice that still fits 128 bits, which the code below relies on.
Unsigned Largest() {
  static const Unsigned largest = static_cast<Unsigned>(PowerOfTen(kMaxDecimalDigits)) - 1;
  return largest;
}

std::optional<__int128> Signed(bool negative, Unsigned magnitude) {
  if (magnitude > Largest()) return std::nullopt;
  const auto n = static_cast<__int128>(magnitude);
  return negative ? -n : n;
}

/// magnitude · 10^digits; nothing beyond 128 bits.
std::optional<Unsigned> ShiftLeft(Unsigned magnitude, int digits) {
  Unsigned product;
  if (__builtin_mul_overflow(magnitude, static_cast<Unsigned>(PowerOfTen(digits)), &product))
    return std::nullopt;
  return product;
}

}  // namespace

bool FitsDecimal(__int128 n) {
  return Magnitude(n) <= Largest();
}

std::optional<__int128> Rescale(__int128 n, int from, int to) {
  const bool negative = n < 0;
  const Unsigned magnitude = Magnitude(n);
  if (to >= from) {
    const std::optional<Unsigned> shifted = ShiftLeft(magnitude, to - from);
    return shifted.has_value() ? Signed(negative, *shifted) : std::nullopt;
  }
  const auto divisor = static_cast<Unsigned>(PowerOfTen(from - to));
  const Unsigned remainder = magnitude % divisor;
  return Signed(negative, magnitude / divisor + (remainder >= divisor - remainder ? 1 : 0));
}

std::optional<__int128> AddDecimals(__int128 a, int scale_a, __int128 b, int scale_b) {
  const int scale = std::max(scale_a, scale_b);
  // At most one side is shifted. Beyond 128 bits (3.4·10^38) the other side (below 10^38) cannot compensate
  // it.
  const std::optional<Unsigned> left = ShiftLeft(Magnitude(a), scale - scale_a);
  const std::optional<Unsigned> right = ShiftLeft(Magnitude(b), scale - scale_b);
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  if ((a < 0) != (b < 0)) {
    return *left >= *right ? Signed(a < 0, *left - *right) : Signed(b < 0, *right - *left);
  }
  Unsigned sum;
  if (__builtin_add_overflow(*left, *right, &sum)) return std::nullopt;
  return Signed(a < 0, sum);
}

std::optional<__int128> MultiplyDecimals(__int128 a, __int128 b) {
  Unsigned product;
  if (__builtin_mul_overflow(Magnitude(a), Magnitude(b), &product)) return std::nullopt;
  return Signed((a < 0) != (b < 0), product);
}

namespace {

/// digits · 10^exponent, with its scale within bounds if possible.
absl::StatusOr<Value> WithExponent(const Value& digits, int64_t exponent) {
  const absl::Status too_long = absl::OutOfRangeError("more than 38 digits");
  __int128 number = digits.number;
  int64_t scale = digits.type.scale - exponent;
  for (; scale < 0 && number != 0; ++scale) {
    if (number > PowerOfTen(37) || number < -PowerOfTen(37)) return too_long;
    number *= 10;
  }
  for (; scale > kMaxDecimalDigits && number % 10 == 0 && number != 0; --scale) number /= 10;
  if (number == 0) scale = std::clamp<int64_t>(scale, 0, kMaxDecimalDigits);
  if (scale > kMaxDecimalDigits || !FitsDecimal(number)) return too_long;
  return Value::Decimal(number, static_cast<uint8_t>(scale));
}

}  // namespace

absl::StatusOr<Value> ParseNumeric(std::string_view text) {
  const std::string_view trimmed = TrimBlanks(text);
  const size_t e = trimmed.find_first_of("eE");
  const absl::StatusOr<Value> digits = ParseNumber(trimmed.substr(0, e));
  if (e == std::string_view::npos || absl::IsInvalidArgument(digits.status())) return digits;
  // Exponents beyond a thousand are all equivalent.
  const std::string_view written = trimmed.substr(e + 1);
  const bool negative = !written.empty() && written[0] == '-';
  const std::string_view figures = written.substr(!written.empty() && (negative || written[0] == '+'));
  int64_t exponent = 0;
  for (const char c : figures) {
    if (c < '0' || c > '9') return absl::InvalidArgumentError("the exponent is no number");
    exponent = std::min<int64_t>(exponent * 10 + (c - '0'), 1000);
  }
  if (figures.empty()) return absl::InvalidArgumentError("the exponent is no number");
  if (!digits.ok()) return digits;
  return WithExponent(*digits, negative ? -exponent : exponent);
}

absl::StatusOr<Value> ParseRounded(std::string_view text) {
  absl::StatusOr<Value> number = ParseNumeric(text);
  if (!absl::IsOutOfRange(number.status())) return number;
  const absl::StatusOr<Numeric> rounded = ParseNumericText(text);
  return rounded.ok() ? absl::StatusOr<Value>(Value::Decimal(rounded->digits, rounded->scale)) : number;
}

uint8_t ScaleOfText(std::string_view text) {
  const absl::StatusOr<Value> number = ParseRounded(text);
  return number.ok() ? number->type.scale : 0;
}

}  // namespace nam
