#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "types/numeric.h"
#include "types/sql_error.h"
#include "types/wide_numeric.h"

/// Powers, logarithms and roots: computed to 72 digits, twice as many as a result has, and rounded once to
/// the scale that PostgreSQL chooses.
namespace nam {
namespace {

constexpr int kFloatDigits = 72;
constexpr double kLog10OfE = 0.434294481903252;  // of PostgreSQL's estimates

/// ±coefficient · 10^exponent, the coefficient of at most 72 digits. Exact as long as a result has no more.
struct DecimalFloat {
  bool negative = false;
  Wide<4> coefficient;
  int64_t exponent = 0;

  bool zero() const { return coefficient.zero(); }
  /// The exponent of ten just above the number.
  int64_t top() const { return DigitsOf(coefficient) + exponent; }
};

DecimalFloat FloatOf(const Numeric& a) {
  return {a.digits < 0, Wide<4>(Magnitude128(a.digits)), -int64_t{a.scale}};
}
DecimalFloat FloatOf(int64_t n, int64_t exponent = 0) {
  return {n < 0, Wide<4>(Magnitude128(n)), exponent};
}

DecimalFloat Rounded(bool negative, const Wide<8>& n, int64_t exponent) {
  const int dropped = DigitsOf(n) - kFloatDigits;
  if (dropped <= 0) return {negative, Wide<4>(n), exponent};
  const Wide<8> power = WidePowerOfTen<8>(dropped);
  const auto [quotient, rest] = Divide(n, power);
  return {negative, Wide<4>(rest >= power - rest ? quotient + Wide<8>(1) : quotient), exponent + dropped};
}

DecimalFloat operator*(const DecimalFloat& a, const DecimalFloat& b) {
  return Rounded(a.negative != b.negative, Wide<8>(a.coefficient) * Wide<8>(b.coefficient),
                 a.exponent + b.exponent);
}

/// b is not 0.
DecimalFloat operator/(const DecimalFloat& a, const DecimalFloat& b) {
  const int shift = kFloatDigits + 1 + DigitsOf(b.coefficient) - DigitsOf(a.coefficient);
  const Wide<8> n = Wide<8>(a.coefficient) * WidePowerOfTen<8>(std::max(shift, 0));
  return Rounded(a.negative != b.negative, Divide(n, Wide<8>(b.coefficient)).quotient,
                 a.exponent - b.exponent - std::max(shift, 0));
}

DecimalFloat operator-(const DecimalFloat& a) {
  return {!a.negative, a.coefficient, a.exponent};
}

DecimalFloat operator+(const DecimalFloat& a, const DecimalFloat& b) {
  if (a.zero()) return b;
  if (b.zero()) return a;
  if (a.exponent < b.exponent) return b + a;
  // Either the lower number is too small to count, or both fit at its exponent.
  if (a.top() - b.top() > kFloatDigits + 2) return a;
  if (b.top() - a.top() > kFloatDigits + 2) return b;
  const Wide<8> left = Wide<8>(a.coefficient) * WidePowerOfTen<8>(static_cast<int>(a.exponent - b.exponent));
  const Wide<8> right(b.coefficient);
  if (a.negative == b.negative) return Rounded(a.negative, left + right, b.exponent);
  return left >= right ? Rounded(a.negative, left - right, b.exponent)
                       : Rounded(b.negative, right - left, b.exponent);
}

/// Half away from zero.
DecimalFloat RoundedTo(const DecimalFloat& a, int scale) {
  const int64_t dropped = -a.exponent - scale;
  if (dropped <= 0) return a;
  if (dropped > kFloatDigits) return {};
  const Wide<4> power = WidePowerOfTen<4>(static_cast<int>(dropped));
  const auto [quotient, rest] = Divide(a.coefficient, power);
  return {a.negative, rest >= power - rest ? quotient + Wide<4>(1) : quotient, -int64_t{scale}};
}

/// Near enough for estimates.
double ApproximationOf(const DecimalFloat& a) {
  double out = 0;
  for (int i = 3; i >= 0; --i) out = out * 0x1p64 + static_cast<double>(a.coefficient.words[i]);
  const auto exponent = static_cast<double>(std::clamp<int64_t>(a.exponent, -600, 600));
  // In two steps: one power of ten may be no double.
  out = out * std::pow(10.0, exponent / 2) * std::pow(10.0, exponent / 2);
  return a.negative ? -out : out;
}

// ─── Functions of 72 digits

const DecimalFloat& NaturalLogarithmOfTen() {
  // 2.302585092994045684 017991454684364207 601101488628772976 033327900967572610
  static const DecimalFloat value = FloatOf(2302585092994045684, -18) + FloatOf(17991454684364207, -36) +
                                    FloatOf(601101488628772976, -54) + FloatOf(33327900967572610, -72);
  return value;
}

DecimalFloat ExpOf(const DecimalFloat& x) {
  // x = k · ln 10 + r, and exp(r) = exp(r / 2^10)^(2^10).
  constexpr int kHalvings = 10, kTerms = 20;
  const int64_t k = std::llrint(ApproximationOf(x) * kLog10OfE);
  const DecimalFloat r = (x + -(FloatOf(k) * NaturalLogarithmOfTen())) / FloatOf(1 << kHalvings);
  DecimalFloat sum = FloatOf(1), term = FloatOf(1);
  for (int i = 1; i <= kTerms; ++i) {
    term = term * r / FloatOf(i);
    sum = sum + term;
  }
  for (int i = 0; i < kHalvings; ++i) sum = sum * sum;
  sum.exponent += k;
  return sum;
}

/// x > 0.
DecimalFloat LnOf(const DecimalFloat& x) {
  // x = m · 10^k, m within the roots of 1/10 and 10, so that nothing cancels out near 1.
  const int64_t exponent = x.top() - 1;
  DecimalFloat m = x;
  m.exponent -= exponent;
  int64_t k = exponent;
  if (ApproximationOf(m) > 3.1622) {
    --m.exponent;
    ++k;
  }
  // ln m = y + ln(m / exp(y)); y has 15 decimals, so that the rest is the series of a tiny number.
  const DecimalFloat y = FloatOf(std::llrint(std::log(ApproximationOf(m)) * 1e15), -15);
  const DecimalFloat e = ExpOf(y);
  const DecimalFloat z = (m + -e) / (m + e), square = z * z;
  DecimalFloat sum, power = z;
  for (int i = 1; i <= 7; i += 2) {
    sum = sum + power / FloatOf(i);
    power = power * square;
  }
  return FloatOf(k) * NaturalLogarithmOfTen() + y + FloatOf(2) * sum;
}

/// x^n by squaring.
DecimalFloat WholePowerOf(DecimalFloat x, int64_t n) {
  DecimalFloat out = FloatOf(1);
  for (uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); left != 0; left >>= 1) {
    if ((left & 1) != 0) out = out * x;
    x = x * x;
  }
  return n < 0 ? FloatOf(1) / out : out;
}

// ─── Scales

int BoundedScale(int estimate, int scale_a, int scale_b = 0) {
  return std::min(std::max({estimate, scale_a, scale_b}), 1000);
}

/// The exponent of ten of |ln a|, as PostgreSQL estimates it. a > 0.
int WeightOfLn(const Numeric& a) {
  const auto one = static_cast<__int128>(internal::kWidePowers[a.scale].low());
  if (a.digits == one) return 0;
  if (a.digits >= one / 10 * 9 && a.digits <= one + one / 10 && a.scale > 0) {
    const FirstDigits digits = FirstDigitsOf(Wide<4>(Magnitude128(a.digits - one)), a.scale);
    return digits.weight * 4 + static_cast<int>(std::log10(digits.first));
  }
  const FirstDigits digits = FirstDigitsOf(Wide<4>(Magnitude128(a.digits)), a.scale);
  const double ln =
      std::log(digits.first * 10000.0 + digits.second) + (digits.weight - 1) * 4 * 2.302585092994046;
  return ln == 0 ? 0 : static_cast<int>(std::log10(std::abs(ln)));
}

absl::StatusOr<Numeric> ResultOf(const DecimalFloat& x, int scale, int position) {
  constexpr int64_t kFar = 1'000'000;  // no matter how far
  const std::optional<Numeric> out =
      RoundWide(x.negative, x.coefficient, static_cast<int>(-std::clamp(x.exponent, -kFar, kFar)), scale);
  if (!out.has_value()) return NumericOutOfRange(position);
  return *out;
}

absl::StatusOr<Numeric> ExpResult(const DecimalFloat& x, bool negative, int scale, int position) {
  // Beyond any result, or below any.
  constexpr double kMostLn = 100;
  const double estimate = ApproximationOf(x);
  if (estimate > kMostLn) return NumericOutOfRange(position);
  if (estimate < -kMostLn) return ResultOf({}, scale, position);
  DecimalFloat out = ExpOf(x);
  out.negative = negative;
  return ResultOf(out, scale, position);
}

absl::Status NoLogarithm(const Numeric& a, int position) {
  return UserError(
      sqlstate::kBadLogarithm,
      a.digits == 0 ? "cannot take logarithm of zero" : "cannot take logarithm of a negative number",
      position);
}

/// An integer's 64 bits, whatever its scale.
std::optional<int64_t> WholeOf(const Numeric& a) {
  const Numeric whole = TruncNumeric(a, 0).value_or(a);
  if (CompareNumerics(whole, a) != 0 || whole.digits != static_cast<int64_t>(whole.digits))
    return std::nullopt;
  return static_cast<int64_t>(whole.digits);
}

/// |base|^exponent by logarithms, base not 0.
absl::StatusOr<Numeric> PowerByLn(const Numeric& base, const Numeric& exponent, bool negative, int position) {
  const Numeric magnitude = AbsNumeric(base);
  const DecimalFloat ln = LnOf(FloatOf(magnitude));
  // The scale is of an estimate to 8 digits.
  const int scale = std::clamp(8 - WeightOfLn(magnitude), 0, 1000);
  const double estimate =
      ApproximationOf(RoundedTo(RoundedTo(ln, scale) * FloatOf(exponent), scale)) * kLog10OfE;
  const int digits = static_cast<int>(std::clamp(estimate, -10000.0, 10000.0));
  return ExpResult(ln * FloatOf(exponent), negative, BoundedScale(16 - digits, base.scale, exponent.scale),
                   position);
}

}  // namespace

absl::StatusOr<Numeric> NumericPower(const Numeric& base, const Numeric& exponent, int position) {
  if (base.digits == 0 && exponent.digits < 0)
    return UserError(sqlstate::kBadPower, "zero raised to a negative power is undefined", position);
  const std::optional<int64_t> whole = WholeOf(exponent);
  if (whole.has_value() && *whole == static_cast<int32_t>(*whole)) {
    return ResultOf(WholePowerOf(FloatOf(base), *whole), BoundedScale(16, base.scale), position);
  }
  const Numeric floor = FloorNumeric(exponent);
  if (base.digits < 0 && CompareNumerics(floor, exponent) != 0)
    return UserError(sqlstate::kBadPower,
                     "a negative number raised to a non-integer power yields a complex result", position);
  if (base.digits == 0) return Numeric{0, 16};
  return PowerByLn(base, exponent, base.digits < 0 && floor.digits % 2 != 0, position);
}

absl::StatusOr<Numeric> NumericExp(const Numeric& a, int position) {
  const double digits = std::clamp(NumericToDouble(a) * kLog10OfE, -2000.0, 2000.0);
  return ExpResult(FloatOf(a), false, BoundedScale(16 - static_cast<int>(digits), a.scale), position);
}

absl::StatusOr<Numeric> NumericLn(const Numeric& a, int position) {
  if (a.digits <= 0) return NoLogarithm(a, position);
  return ResultOf(LnOf(FloatOf(a)), BoundedScale(16 - WeightOfLn(a), a.scale), position);
}

absl::StatusOr<Numeric> NumericLog(const Numeric& base, const Numeric& a, int position) {
  if (base.digits <= 0) return NoLogarithm(base, position);
  if (a.digits <= 0) return NoLogarithm(a, position);
  const DecimalFloat ln = LnOf(FloatOf(base));
  if (ln.zero()) return DivisionByZero(position);
  return ResultOf(LnOf(FloatOf(a)) / ln,
                  BoundedScale(16 - (WeightOfLn(a) - WeightOfLn(base)), base.scale, a.scale), position);
}

absl::StatusOr<Numeric> NumericSqrt(const Numeric& a, int position) {
  if (a.digits < 0)
    return UserError(sqlstate::kBadPower, "cannot take square root of a negative number", position);
  const Wide<4> n(Magnitude128(a.digits));
  const int estimate = 16 - (2 * FirstDigitsOf(n, a.scale).weight + 1);
  const std::optional<Numeric> root = RootOfWide(n, a.scale, BoundedScale(estimate, a.scale));
  if (!root.has_value()) return NumericOutOfRange(position);
  return *root;
}

}  // namespace nam
