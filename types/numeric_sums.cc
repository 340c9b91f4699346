#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "types/numeric.h"
#include "types/sql_error.h"
#include "types/wide_numeric.h"

namespace nam {
namespace {

/// Twice the bits of a number's square, and room for 2^63 rows.
constexpr int kSumWords = 10;
using SumWide = Wide<kSumWords>;

constexpr unsigned __int128 kLimbMask = (static_cast<unsigned __int128>(1) << kNumericLimbBits) - 1;

template <int kWords>
__int128 LimbOf(const Wide<kWords>& n, int i) {
  return static_cast<__int128>((n >> (i * kNumericLimbBits)).low() & kLimbMask);
}

/// a · b of numbers below 2^127, without the loops of Wide.
Wide<4> FullProduct(unsigned __int128 a, unsigned __int128 b) {
  using Uint128 = unsigned __int128;
  const auto low = [](Uint128 n) { return static_cast<uint64_t>(n); };
  const auto high = [](Uint128 n) { return static_cast<uint64_t>(n >> 64); };
  const Uint128 first = Uint128{low(a)} * low(b), last = Uint128{high(a)} * high(b);
  // Neither product reaches 2^127, so their sum fits.
  const Uint128 middle = Uint128{low(a)} * high(b) + Uint128{high(a)} * low(b);
  Wide<4> out;
  const Uint128 second = Uint128{high(first)} + low(middle);
  const Uint128 upper = last + high(middle) + high(second);
  out.words = {low(first), low(second), low(upper), high(upper)};
  return out;
}

/// In two's complement.
template <size_t kOf>
SumWide OfWords(const std::array<uint64_t, kOf>& words) {
  SumWide out;
  out.words.fill(words.back() >> 63 != 0 ? ~uint64_t{0} : 0);
  std::copy(words.begin(), words.end(), out.words.begin());
  return out;
}

/// In two's complement.
SumWide OfLimbs(const __int128* limbs, int n) {
  SumWide out;
  for (int i = 0; i < n; ++i) out = out + (SumWide::OfSigned(limbs[i]) << (i * kNumericLimbBits));
  return out;
}

/// In two's complement.
SumWide OfDecimalLimbs(const __int128 limbs[kDecimalLimbs]) {
  return SumWide::OfSigned(limbs[0]) + (SumWide::OfSigned(limbs[1]) << 64);
}

SumWide MagnitudeOf(const SumWide& n) {
  return n.negative() ? -n : n;
}

absl::StatusOr<Numeric> InRange(const std::optional<Numeric>& number) {
  if (!number.has_value()) return NumericOutOfRange(-1);
  return *number;
}

/// `sum` / 10^unit in two's complement, whose numbers have `scale` decimals.
absl::StatusOr<Numeric> AverageOf(const SumWide& sum, int unit, int scale, int64_t count) {
  NAM_CHECK(count > 0);
  const SumWide n = MagnitudeOf(sum), divisor(static_cast<unsigned __int128>(count));
  const int wanted = QuotientScale(FirstDigitsOf(n, unit), FirstDigitsOf(divisor, 0), scale, 0);
  return InRange(DivideWide(sum.negative(), n, unit, divisor, 0, wanted));
}

struct Spread {
  SumWide sum, squares;  // of numbers in units of 10^-unit, and of their squares
  int unit;
  int scale;
  int64_t count;
};

/// (n · Σx² - (Σx)²) / (n · (n - 1)), or / n². A root is that of the quotient at its scale, as in PostgreSQL.
absl::StatusOr<Numeric> VarianceOf(const Spread& spread, bool sample, bool root) {
  NAM_CHECK(spread.count > (sample ? 1 : 0));
  const SumWide count(static_cast<unsigned __int128>(spread.count)), sum = MagnitudeOf(spread.sum);
  const SumWide most = count * MagnitudeOf(spread.squares), least = sum * sum;
  if (least >= most) return Numeric{};
  const SumWide n = most - least, divisor = count * (sample ? count - SumWide(1) : count);
  const int unit = 2 * spread.unit;
  const int wanted = QuotientScale(FirstDigitsOf(n, unit), FirstDigitsOf(divisor, 0), 2 * spread.scale, 0);
  if (!root) return InRange(DivideWide(false, n, unit, divisor, 0, wanted));
  const SumWide power = WidePowerOfTen<kSumWords>(std::abs(wanted - unit));
  const SumWide shifted = wanted >= unit ? divisor : divisor * power;
  const auto [quotient, rest] = Divide(wanted >= unit ? n * power : n, shifted);
  return InRange(RootOfWide(rest >= shifted - rest ? quotient + SumWide(1) : quotient, wanted, wanted));
}

}  // namespace

__int128 NumericLimb(const Numeric& number, int i) {
  const unsigned __int128 power = WidePowerOfTen<4>(kMaxNumericScale - number.scale).low();
  // The lowest bits of a product are those of the product of the lowest bits, whatever the signs.
  if (i == 0) return static_cast<__int128>(static_cast<unsigned __int128>(number.digits) * power & kLimbMask);
  const Wide<4> magnitude = FullProduct(Magnitude128(number.digits), power);
  const Wide<4> n = number.digits < 0 ? -magnitude : magnitude;
  if (i < kNumericLimbs - 1) return LimbOf(n, i);
  // The bits from 168 on, of which there are 88, with the sign.
  return static_cast<__int128>((n >> (i * kNumericLimbBits)).low() << 40) >> 40;
}

__int128 NumericSquareLimb(const Numeric& number, int i) {
  const Wide<8> magnitude(Magnitude128(number.digits));
  return LimbOf(magnitude * magnitude * WidePowerOfTen<8>(2 * (kMaxNumericScale - number.scale)), i);
}

std::optional<Numeric> NumericOfLimbs(const __int128 limbs[kNumericLimbs], int scale) {
  const SumWide n = OfLimbs(limbs, kNumericLimbs);
  return RoundWide(n.negative(), MagnitudeOf(n), kMaxNumericScale, scale);
}

std::optional<Numeric> NumericOfDecimalLimbs(const __int128 limbs[kDecimalLimbs], int scale) {
  const SumWide n = OfDecimalLimbs(limbs);
  return RoundWide(n.negative(), MagnitudeOf(n), scale, scale);
}

absl::StatusOr<Numeric> NumericAverage(const __int128 sums[kNumericLimbs], int scale, int64_t count) {
  return AverageOf(OfLimbs(sums, kNumericLimbs), kMaxNumericScale, scale, count);
}

absl::StatusOr<Numeric> DecimalAverage(__int128 sum, int scale, int64_t count) {
  return AverageOf(SumWide::OfSigned(sum), scale, scale, count);
}

absl::StatusOr<Numeric> DecimalAverage(const __int128 sums[kDecimalLimbs], int scale, int64_t count) {
  return AverageOf(OfDecimalLimbs(sums), scale, scale, count);
}

absl::StatusOr<Numeric> NumericVariance(const __int128 sums[kNumericLimbs],
                                        const __int128 squares[kNumericSquareLimbs], int scale, int64_t count,
                                        bool sample, bool root) {
  return VarianceOf(
      {OfLimbs(sums, kNumericLimbs), OfLimbs(squares, kNumericSquareLimbs), kMaxNumericScale, scale, count},
      sample, root);
}

absl::StatusOr<Numeric> DecimalVariance(__int128 sum, __int128 squares, int scale, int64_t count, bool sample,
                                        bool root) {
  return VarianceOf({SumWide::OfSigned(sum), SumWide::OfSigned(squares), scale, scale, count}, sample, root);
}

absl::StatusOr<Numeric> DecimalVariance(const std::array<uint64_t, 3>& sum,
                                        const std::array<uint64_t, 5>& squares, int scale, int64_t count,
                                        bool sample, bool root) {
  return VarianceOf({OfWords(sum), OfWords(squares), scale, scale, count}, sample, root);
}

}  // namespace nam
