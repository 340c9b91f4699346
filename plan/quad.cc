#include "plan/quad.h"

#include <cmath>

#include "types/decimal.h"
#include "types/value.h"

namespace nam::plan {
namespace {

constexpr int kSeriesTerms = 40;

/// ln 2 to 34 digits, in two parts that a quad holds.
const Quad kLn2 =
    static_cast<Quad>(0.693147180559945309417232121458L) +
    (static_cast<Quad>(693147180559945309LL) / 1e18 - static_cast<Quad>(0.693147180559945309417232121458L)) +
    static_cast<Quad>(417232121458176568LL) / 1e18 / 1e18;

/// 2 · (y + y³/3 + y⁵/5 …) = ln((1 + y) / (1 - y)), for small y.
Quad LogarithmSeries(Quad y) {
  const Quad square = y * y;
  Quad sum = 0, power = y;
  for (int i = 0; i < kSeriesTerms; ++i) {
    sum += power / (2 * i + 1);
    power *= square;
  }
  return 2 * sum;
}

}  // namespace

const Quad kLn10 = 3 * kLn2 + LogarithmSeries(static_cast<Quad>(1) / 9);  // 10 = 2³ · 1.25

Quad QuadOf(__int128 unscaled, int scale) {
  return static_cast<Quad>(unscaled) / static_cast<Quad>(PowerOfTen(scale));
}

std::optional<__int128> DecimalOf(Quad x, int scale) {
  Quad scaled = x * static_cast<Quad>(PowerOfTen(scale));
  scaled += scaled < 0 ? -0.5 : 0.5;
  const auto limit = static_cast<Quad>(PowerOfTen(kMaxDecimalDigits));
  if (!(scaled < limit) || !(scaled > -limit)) return std::nullopt;
  const auto n = static_cast<__int128>(scaled);
  return FitsDecimal(n) ? std::optional(n) : std::nullopt;
}

Quad SquareRoot(Quad x) {
  if (x == 0) return 0;
  Quad root = std::sqrt(static_cast<long double>(x));
  for (int i = 0; i < 2; ++i) root = (root + x / root) / 2;
  return root;
}

Quad NaturalLogarithm(Quad x) {
  int exponent = 0;
  while (x > 1.5) {
    x /= 2;
    ++exponent;
  }
  while (x < 0.75) {
    x *= 2;
    --exponent;
  }
  return LogarithmSeries((x - 1) / (x + 1)) + exponent * kLn2;
}

Quad Exponential(Quad x) {
  // exp(x) = 2^n · exp(r / 2^8)^(2^8), with |r| ≤ ln 2 / 2.
  const int n = static_cast<int>(std::lrint(static_cast<double>(x / kLn2)));
  Quad r = (x - n * kLn2) / 256;
  Quad sum = 0, term = 1;
  for (int i = 1; i < kSeriesTerms / 2; ++i) {
    term *= r / i;
    sum += term;
  }
  // exp(2r) - 1 from exp(r) - 1 keeps what is near to 0 exact.
  for (int i = 0; i < 8; ++i) sum = sum * (2 + sum);
  Quad out = 1 + sum;
  for (int i = 0; i < n; ++i) out *= 2;
  for (int i = 0; i > n; --i) out /= 2;
  return out;
}

Quad WholePower(Quad x, __int128 exponent) {
  const bool negative = exponent < 0;
  auto left = negative ? -static_cast<unsigned __int128>(exponent) : static_cast<unsigned __int128>(exponent);
  Quad out = 1;
  for (; left != 0; left >>= 1) {
    if ((left & 1) != 0) out *= x;
    x *= x;
  }
  return negative ? 1 / out : out;
}

}  // namespace nam::plan
