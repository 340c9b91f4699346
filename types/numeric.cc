#include "types/numeric.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "absl/status/status.h"
#include "base/check.h"
#include "types/characters.h"
#include "types/decimal.h"
#include "types/wide_numeric.h"

namespace nam {
namespace {

using Uint128 = unsigned __int128;

constexpr int kScaleBits = 6;
constexpr int kKeyCoefficientBits = 120;  // 10^36 < 2^120
constexpr int kKeyBias = kMaxNumericScale + 1;
constexpr size_t kOrderedBytes = 17;

/// 10^exponent, exponents 0 … 38.
Uint128 Power(int exponent) {
  return internal::kWidePowers[exponent].low();
}

bool IsShort(Uint128 magnitude) {
  return magnitude < Power(kMaxNumericDigits);
}

/// The number of decimal digits of n < 10^38; 0 of 0.
int DecimalDigits(Uint128 n) {
  if (n == 0) return 0;
  const auto high = static_cast<uint64_t>(n >> 64);
  const int bits = high != 0 ? 128 - std::countl_zero(high) : std::bit_width(static_cast<uint64_t>(n));
  const int digits = ((bits - 1) * 1233 >> 12) + 1;
  return digits + (n >= Power(digits) ? 1 : 0);
}

Uint128 Quotient(Uint128 a, Uint128 b) {
  if ((a >> 64) == 0 && (b >> 64) == 0) return static_cast<uint64_t>(a) / static_cast<uint64_t>(b);
  return a / b;
}

/// As FirstDigitsOf, of the first digit alone.
FirstDigits FirstDigitOf(Uint128 n, int scale) {
  if (n == 0) return {};
  const int exponent = DecimalDigits(n) - 1 - scale;
  const int weight = (exponent >= 0 ? exponent : exponent - 3) / 4;
  const int shift = scale + 4 * weight;
  return {weight, static_cast<int>(shift >= 0 ? Quotient(n, Power(shift)) : n * Power(-shift)), 0};
}

/// The digits at a larger scale; empty beyond 128 bits.
std::optional<__int128> AtScale(const Numeric& a, int scale) {
  __int128 out;
  if (__builtin_mul_overflow(a.digits, static_cast<__int128>(Power(scale - a.scale)), &out))
    return std::nullopt;
  return out;
}

/// As AtScale, without bounds, in two's complement.
Wide<4> WideAtScale(const Numeric& a, int scale) {
  const Wide<4> magnitude = Wide<4>(Magnitude128(a.digits)) * WidePowerOfTen<4>(scale - a.scale);
  return a.digits < 0 ? -magnitude : magnitude;
}

std::optional<Numeric> FitSigned(const Wide<4>& n, int scale) {
  return RoundWide(n.negative(), n.negative() ? -n : n, scale, scale);
}

}  // namespace

// ─── Words and keys

__int128 PackNumeric(const Numeric& number) {
  return static_cast<__int128>(static_cast<Uint128>(number.digits) << kScaleBits | number.scale);
}

Numeric UnpackNumeric(__int128 word) {
  const Numeric number{word >> kScaleBits, static_cast<uint8_t>(word & ((1 << kScaleBits) - 1))};
  return number.scale <= kMaxNumericScale && IsShort(Magnitude128(number.digits)) ? number : Numeric{};
}

bool IsNumericWord(__int128 word) {
  return PackNumeric(UnpackNumeric(word)) == word;
}

__int128 NumericKey(const Numeric& number) {
  if (number.digits == 0) return 0;
  const Uint128 magnitude = Magnitude128(number.digits);
  const int digits = DecimalDigits(magnitude);
  const int exponent = digits - 1 - number.scale;
  const auto key = static_cast<__int128>(static_cast<Uint128>(exponent + kKeyBias) << kKeyCoefficientBits |
                                         magnitude * Power(kMaxNumericDigits - digits));
  return number.digits < 0 ? -key : key;
}

std::string OrderedNumericBytes(const Numeric& number) {
  const Uint128 key = static_cast<Uint128>(NumericKey(number)) ^ static_cast<Uint128>(1) << 127;
  std::string bytes(kOrderedBytes, '\0');
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<char>(static_cast<uint8_t>(key >> (120 - 8 * i)));
  bytes[kOrderedBytes - 1] = static_cast<char>(number.scale);
  return bytes;
}

std::optional<Numeric> NumericOfKey(__int128 key, int scale) {
  if (scale < 0 || scale > kMaxNumericScale) return std::nullopt;
  if (key == 0) return Numeric{0, static_cast<uint8_t>(scale)};
  const Uint128 magnitude = Magnitude128(key);
  const int exponent = static_cast<int>(magnitude >> kKeyCoefficientBits) - kKeyBias;
  const int digits = exponent + 1 + scale;
  if (digits < 1 || digits > kMaxNumericDigits) return std::nullopt;
  const Uint128 coefficient = magnitude & ((static_cast<Uint128>(1) << kKeyCoefficientBits) - 1);
  if (coefficient < Power(kMaxNumericDigits - 1) || !IsShort(coefficient)) return std::nullopt;
  const Uint128 power = Power(kMaxNumericDigits - digits), shortened = coefficient / power;
  if (shortened * power != coefficient) return std::nullopt;
  return NumericOf(key < 0, shortened, scale);
}

std::optional<Numeric> NumericOfOrderedBytes(std::string_view bytes) {
  if (bytes.size() != kOrderedBytes) return std::nullopt;
  Uint128 ordered = 0;
  for (int i = 0; i < 16; ++i) ordered = ordered << 8 | static_cast<uint8_t>(bytes[i]);
  const auto key = static_cast<__int128>(ordered ^ static_cast<Uint128>(1) << 127);
  return NumericOfKey(key, static_cast<uint8_t>(bytes[kOrderedBytes - 1]));
}

// ─── Arithmetic

std::optional<Numeric> FitNumeric(__int128 digits, int scale) {
  const Uint128 magnitude = Magnitude128(digits);
  if (scale <= kMaxNumericScale && IsShort(magnitude)) return Numeric{digits, static_cast<uint8_t>(scale)};
  return RoundWide(digits < 0, Wide<4>(magnitude), scale, scale);
}

std::optional<Numeric> AddNumerics(const Numeric& a, const Numeric& b) {
  const int scale = std::max(a.scale, b.scale);
  const std::optional<__int128> left = AtScale(a, scale), right = AtScale(b, scale);
  __int128 sum;
  if (left.has_value() && right.has_value() && !__builtin_add_overflow(*left, *right, &sum))
    return FitNumeric(sum, scale);
  return FitSigned(WideAtScale(a, scale) + WideAtScale(b, scale), scale);
}

std::optional<Numeric> SubtractNumerics(const Numeric& a, const Numeric& b) {
  return AddNumerics(a, NegateNumeric(b));
}

std::optional<Numeric> MultiplyNumerics(const Numeric& a, const Numeric& b) {
  const int scale = a.scale + b.scale;
  __int128 product;
  if (!__builtin_mul_overflow(a.digits, b.digits, &product)) return FitNumeric(product, scale);
  const Wide<4> wide = Wide<4>(Magnitude128(a.digits)) * Wide<4>(Magnitude128(b.digits));
  return RoundWide((a.digits < 0) != (b.digits < 0), wide, scale, scale);
}

std::optional<Numeric> DivideNumerics(const Numeric& a, const Numeric& b) {
  NAM_CHECK(b.digits != 0);
  const bool negative = (a.digits < 0) != (b.digits < 0);
  const Uint128 n = Magnitude128(a.digits), divisor = Magnitude128(b.digits);
  const int wanted =
      std::min(QuotientScale(FirstDigitOf(n, a.scale), FirstDigitOf(divisor, b.scale), a.scale, b.scale),
               kMaxNumericScale);
  const int shift = wanted - a.scale + b.scale;  // not negative, since wanted is at least a's
  if (DecimalDigits(n) + shift <= kMaxDecimalDigits) {
    const Uint128 shifted = n * Power(shift);
    Uint128 quotient = Quotient(shifted, divisor);
    const Uint128 remainder = shifted - quotient * divisor;
    if (remainder >= divisor - remainder) ++quotient;
    if (IsShort(quotient)) return NumericOf(negative, quotient, wanted);
  }
  return DivideWide(negative, Wide<4>(n), a.scale, Wide<4>(divisor), b.scale, wanted);
}

std::optional<Numeric> ModuloNumerics(const Numeric& a, const Numeric& b) {
  NAM_CHECK(b.digits != 0);
  const int scale = std::max(a.scale, b.scale);
  const std::optional<__int128> n = AtScale(a, scale), divisor = AtScale(b, scale);
  if (n.has_value() && divisor.has_value()) return FitNumeric(*n % *divisor, scale);
  const Wide<4> rest = Divide(WideAtScale(AbsNumeric(a), scale), WideAtScale(AbsNumeric(b), scale)).remainder;
  return RoundWide(a.digits < 0, rest, scale, scale);
}

std::optional<Numeric> WholeQuotientOfNumerics(const Numeric& a, const Numeric& b) {
  NAM_CHECK(b.digits != 0);
  const int scale = std::max(a.scale, b.scale);
  const std::optional<__int128> n = AtScale(a, scale), divisor = AtScale(b, scale);
  if (n.has_value() && divisor.has_value()) return FitNumeric(*n / *divisor, 0);
  const Wide<4> quotient =
      Divide(WideAtScale(AbsNumeric(a), scale), WideAtScale(AbsNumeric(b), scale)).quotient;
  return RoundWide((a.digits < 0) != (b.digits < 0), quotient, 0, 0);
}

int CompareNumerics(const Numeric& a, const Numeric& b) {
  const int scale = std::max(a.scale, b.scale);
  const std::optional<__int128> left = AtScale(a, scale), right = AtScale(b, scale);
  // At most one side leaves 128 bits, and then exceeds the other, which has 36 digits.
  if (!left.has_value()) return a.digits < 0 ? -1 : 1;
  if (!right.has_value()) return b.digits < 0 ? 1 : -1;
  return *left < *right ? -1 : *left > *right ? 1 : 0;
}

// ─── Rounding

std::optional<Numeric> RoundNumeric(const Numeric& a, int scale) {
  const bool negative = a.digits < 0;
  const Wide<4> n(Magnitude128(a.digits));
  if (scale >= 0) return RoundWide(negative, n, a.scale, scale);
  // A number beyond a whole part of 36 digits and one more is 0 already.
  scale = std::max(scale, -kMaxNumericDigits - 1);
  const std::optional<Numeric> whole = RoundWide(negative, n, a.scale - scale, 0);
  return RoundWide(negative, Wide<4>(Magnitude128(whole->digits)), scale, 0);
}

std::optional<Numeric> TruncNumeric(const Numeric& a, int scale) {
  if (scale >= a.scale) return RoundNumeric(a, scale);
  const int dropped = a.scale - std::max(scale, -kMaxNumericDigits - 1);
  if (dropped > kMaxDecimalDigits) return Numeric{0, static_cast<uint8_t>(std::max(scale, 0))};
  const auto power = static_cast<__int128>(Power(dropped));
  if (scale >= 0) return Numeric{a.digits / power, static_cast<uint8_t>(scale)};
  return Numeric{(a.digits - a.digits % power) / static_cast<__int128>(Power(a.scale)), 0};
}

Numeric FloorNumeric(const Numeric& a) {
  const auto power = static_cast<__int128>(Power(a.scale));
  return {a.digits / power - (a.digits % power < 0 ? 1 : 0), 0};
}

Numeric CeilNumeric(const Numeric& a) {
  return NegateNumeric(FloorNumeric(NegateNumeric(a)));
}

Numeric AbsNumeric(const Numeric& a) {
  return {a.digits < 0 ? -a.digits : a.digits, a.scale};
}

Numeric NegateNumeric(const Numeric& a) {
  return {-a.digits, a.scale};
}

Numeric SignNumeric(const Numeric& a) {
  return {a.digits < 0 ? -1 : a.digits > 0 ? 1 : 0, 0};
}

Numeric TrimScaleNumeric(const Numeric& a) {
  Numeric out = a;
  while (out.scale > 0 && out.digits % 10 == 0) {
    out.digits /= 10;
    --out.scale;
  }
  return out;
}

std::optional<__int128> NumericToDecimal(const Numeric& a, int scale) {
  return Rescale(a.digits, a.scale, scale);
}

// ─── Text and floating point

namespace {

struct NumericChars {
  char text[48];  // a sign, 39 digits, a point
  int from = sizeof(text);
  std::string_view view() const { return {text + from, sizeof(text) - from}; }
};

NumericChars CharsOf(const Numeric& number) {
  NumericChars out;
  const auto put = [&](char c) { out.text[--out.from] = c; };
  Uint128 left = Magnitude128(number.digits);
  for (int i = 0; left != 0 || i <= number.scale; ++i) {
    if (i == number.scale && i != 0) put('.');
    put(static_cast<char>('0' + static_cast<int>(left % 10)));
    left /= 10;
  }
  if (number.digits < 0) put('-');
  return out;
}

/// The significant digits of a text of any length. A 38th is kept, so that what follows it cannot change how
/// 36 are rounded.
struct WrittenDigits {
  Uint128 digits = 0;
  int64_t dropped = 0;   // digits behind those
  int64_t decimals = 0;  // of all digits
};

/// Parses digits with a point among, before or behind them.
std::optional<WrittenDigits> ReadDigits(std::string_view text) {
  WrittenDigits out;
  bool point = false, any = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(c)) return std::nullopt;
    any = true;
    if (point) ++out.decimals;
    if (out.digits >= Power(kMaxDecimalDigits - 1)) {
      ++out.dropped;
    } else {
      out.digits = out.digits * 10 + static_cast<unsigned>(c - '0');
    }
  }
  return any ? std::optional(out) : std::nullopt;
}

/// Parses an exponent's optional sign and digits. Exponents beyond a million are all equivalent.
std::optional<int64_t> ReadExponent(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (negative || text[0] == '+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  int64_t exponent = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    exponent = std::min<int64_t>(exponent * 10 + (c - '0'), 1'000'000);
  }
  return negative ? -exponent : exponent;
}

}  // namespace

absl::StatusOr<Numeric> ParseNumericText(std::string_view text) {
  text = TrimBlanks(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (negative || text[0] == '+')) text.remove_prefix(1);
  const size_t e = text.find_first_of("eE");
  const std::optional<WrittenDigits> written = ReadDigits(text.substr(0, e));
  const std::optional<int64_t> exponent =
      e == std::string_view::npos ? std::optional<int64_t>(0) : ReadExponent(text.substr(e + 1));
  if (!written.has_value() || !exponent.has_value()) return absl::InvalidArgumentError("not a number");
  const auto bounded = [](int64_t n) {
    return static_cast<int>(std::clamp<int64_t>(n, -1'000'000'000, 1'000'000'000));
  };
  const int64_t decimals = written->decimals - *exponent;
  const std::optional<Numeric> number =
      RoundWide(negative, Wide<4>(written->digits), bounded(decimals - written->dropped),
                bounded(std::max<int64_t>(decimals, 0)));
  if (!number.has_value()) return absl::OutOfRangeError("more than 36 digits before the point");
  return *number;
}

std::string NumericText(const Numeric& number) {
  return std::string(CharsOf(number).view());
}

namespace {

std::optional<Numeric> OfSignificantDigits(double x, int digits) {
  if (!std::isfinite(x)) return std::nullopt;
  char text[40];
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof(text), x, std::chars_format::general, digits);
  const absl::StatusOr<Numeric> number = ParseNumericText({text, static_cast<size_t>(end.ptr - text)});
  return number.ok() ? std::optional(*number) : std::nullopt;
}

}  // namespace

std::optional<Numeric> NumericOfDouble(double x) {
  return OfSignificantDigits(x, 15);
}

std::optional<Numeric> NumericOfReal(float x) {
  return OfSignificantDigits(x, 6);
}

double NumericToDouble(const Numeric& number) {
  // Both sides are exact, so that the quotient is rounded once.
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr int64_t kExact = int64_t{1} << 53;
  if (number.digits >= -kExact && number.digits <= kExact && number.scale <= 22)
    return static_cast<double>(static_cast<int64_t>(number.digits)) / kPowers[number.scale];
  const NumericChars chars = CharsOf(number);
  const std::string_view text = chars.view();
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace nam
