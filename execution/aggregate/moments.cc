#include "execution/aggregate/moments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "base/status_macros.h"
#include "types/numeric.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

/// A natural number, with enough bits that no formula below overflows: the largest, the square of a
/// covariance's numerator, has 762.
class Natural {
 public:
  static constexpr size_t kWords = 13;

  Natural() = default;
  explicit Natural(unsigned __int128 n) : words_{static_cast<uint64_t>(n), static_cast<uint64_t>(n >> 64)} {}
  template <size_t kOf>
  explicit Natural(const WideSum<kOf>& sum) {
    const WideSum<kOf> magnitude = sum.negative() ? sum.Negative() : sum;
    std::copy(magnitude.words.begin(), magnitude.words.end(), words_.begin());
  }

  size_t bits() const {
    for (size_t i = kWords; i-- > 0;) {
      if (words_[i] != 0) return 64 * i + std::bit_width(words_[i]);
    }
    return 0;
  }
  bool zero() const { return bits() == 0; }
  bool operator<(const Natural& other) const {
    for (size_t i = kWords; i-- > 0;) {
      if (words_[i] != other.words_[i]) return words_[i] < other.words_[i];
    }
    return false;
  }
  Natural operator*(const Natural& other) const {
    Natural out;
    for (size_t i = 0; i < kWords; ++i) {
      unsigned __int128 carry = 0;
      if (words_[i] == 0) continue;
      for (size_t j = 0; i + j < kWords; ++j) {
        carry += static_cast<unsigned __int128>(words_[i]) * other.words_[j] + out.words_[i + j];
        out.words_[i + j] = static_cast<uint64_t>(carry);
        carry >>= 64;
      }
    }
    return out;
  }
  Natural operator+(const Natural& other) const {
    Natural out;
    unsigned __int128 carry = 0;
    for (size_t i = 0; i < kWords; ++i) {
      carry += static_cast<unsigned __int128>(words_[i]) + other.words_[i];
      out.words_[i] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
    return out;
  }
  /// `other` is not larger.
  Natural operator-(const Natural& other) const {
    Natural out;
    uint64_t borrow = 0;
    for (size_t i = 0; i < kWords; ++i) {
      const unsigned __int128 left = words_[i];
      const unsigned __int128 right = static_cast<unsigned __int128>(other.words_[i]) + borrow;
      out.words_[i] = static_cast<uint64_t>(left - right);
      borrow = left < right;
    }
    return out;
  }
  long double real() const {
    long double out = 0;
    for (size_t i = kWords; i-- > 0;) out = out * 0x1p64L + static_cast<long double>(words_[i]);
    return out;
  }

 private:
  std::array<uint64_t, kWords> words_ = {};
};

/// A number with its sign.
struct Whole {
  Natural magnitude;
  bool negative = false;
};

template <size_t kOf>
Whole Times(int64_t n, const WideSum<kOf>& sum) {
  return {Natural(sum) * Natural(static_cast<uint64_t>(n)), sum.negative()};
}
template <size_t kOf>
Whole Times(const WideSum<kOf>& a, const WideSum<kOf>& b) {
  return {Natural(a) * Natural(b), a.negative() != b.negative()};
}
Whole Difference(const Whole& a, const Whole& b) {
  if (a.negative != b.negative) return {a.magnitude + b.magnitude, a.negative};
  if (a.magnitude < b.magnitude) return {b.magnitude - a.magnitude, !a.negative};
  return {a.magnitude - b.magnitude, a.negative};
}

Whole Product(const Whole& a, const Whole& b) {
  return {a.magnitude * b.magnitude, a.negative != b.negative};
}
long double RealOf(const Whole& a) {
  return a.negative ? -a.magnitude.real() : a.magnitude.real();
}
/// x · 10^power.
double Scaled(long double x, int power) {
  const long double ten = std::pow(10.0L, std::abs(power));
  return static_cast<double>(power < 0 ? x / ten : x * ten);
}

template <size_t kOf>
WideSum<kOf> Extended(__int128 n) {
  WideSum<kOf> out;
  out.words.fill(n < 0 ? UINT64_MAX : 0);
  out.words[0] = static_cast<uint64_t>(n);
  out.words[1] = static_cast<uint64_t>(n >> 64);
  return out;
}

Moments::Products Product(__int128 a, __int128 b) {
  const auto magnitude = [](__int128 n) {
    return n < 0 ? -static_cast<unsigned __int128>(n) : static_cast<unsigned __int128>(n);
  };
  const unsigned __int128 x = magnitude(a), y = magnitude(b);
  Moments::Products out;
  for (size_t i = 0; i < 2; ++i) {
    unsigned __int128 carry = 0;
    const auto digit = static_cast<uint64_t>(x >> 64 * i);
    for (size_t j = 0; j < 3; ++j) {
      carry += out.words[i + j];
      if (j < 2) carry += static_cast<unsigned __int128>(digit) * static_cast<uint64_t>(y >> 64 * j);
      out.words[i + j] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
  }
  return (a < 0) != (b < 0) ? out.Negative() : out;
}

}  // namespace

void Moments::Accumulate(__int128 a, __int128 b, bool leaves) {
  count_ += leaves ? -1 : 1;
  const auto take = [leaves](auto& sum, const auto& by) { sum.Add(leaves ? by.Negative() : by); };
  take(a_, Extended<3>(a));
  take(aa_, Product(a, a));
  if (b == 0) return;
  take(b_, Extended<3>(b));
  take(bb_, Product(b, b));
  take(ab_, Product(a, b));
}

void Moments::Merge(const Moments& other) {
  count_ += other.count_;
  a_.Add(other.a_);
  b_.Add(other.b_);
  aa_.Add(other.aa_);
  bb_.Add(other.bb_);
  ab_.Add(other.ab_);
}

absl::StatusOr<std::optional<__int128>> Moments::Result(AggregateFunction function, int scale) const {
  const bool sample = function == AggregateFunction::kVarSamp || function == AggregateFunction::kStddevSamp;
  const bool root = function == AggregateFunction::kStddevPop || function == AggregateFunction::kStddevSamp;
  if (count_ < (sample ? 2 : 1)) return std::optional<__int128>();
  NAM_ASSIGN_OR_RETURN(const Numeric result,
                       DecimalVariance(a_.words, aa_.words, scale, count_, sample, root));
  return std::optional(PackNumeric(result));
}

std::optional<double> Moments::ResultOfPairs(AggregateFunction function, int scale_a, int scale_b) const {
  const bool sample = function == AggregateFunction::kCovarSamp;
  if (count_ < (sample ? 2 : 1)) return std::nullopt;
  const auto n = static_cast<long double>(count_);
  // Each is count · Σuv − Σu · Σv, exactly; only the final results are rounded.
  const Whole of_a = Difference(Times(count_, aa_), Times(a_, a_));
  const Whole of_b = Difference(Times(count_, bb_), Times(b_, b_));
  const Whole both = Difference(Times(count_, ab_), Times(a_, b_));
  switch (function) {
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
      return Scaled(RealOf(both) / n / (n - sample), -scale_a - scale_b);
    case AggregateFunction::kRegrAvgX:
      return Scaled(RealOf(Times(1, b_)) / n, -scale_b);
    case AggregateFunction::kRegrAvgY:
      return Scaled(RealOf(Times(1, a_)) / n, -scale_a);
    case AggregateFunction::kRegrSxx:
      return Scaled(RealOf(of_b) / n, -2 * scale_b);
    case AggregateFunction::kRegrSyy:
      return Scaled(RealOf(of_a) / n, -2 * scale_a);
    case AggregateFunction::kRegrSxy:
      return Scaled(RealOf(both) / n, -scale_a - scale_b);
    default:
      break;
  }
  if (of_b.magnitude.zero()) return std::nullopt;
  if (function == AggregateFunction::kRegrSlope)
    return Scaled(RealOf(both) / RealOf(of_b), scale_b - scale_a);
  if (function == AggregateFunction::kRegrIntercept) {
    const Whole above = Difference(Product(Times(1, a_), of_b), Product(Times(1, b_), both));
    return Scaled(RealOf(above) / RealOf(of_b) / n, -scale_a);
  }
  if (of_a.magnitude.zero())
    return function == AggregateFunction::kCorr ? std::nullopt : std::optional<double>(1);
  // Where the line meets all points this is exactly 1.
  const long double square =
      (both.magnitude * both.magnitude).real() / (of_a.magnitude * of_b.magnitude).real();
  if (function == AggregateFunction::kRegrR2) return static_cast<double>(square);
  NAM_CHECK(function == AggregateFunction::kCorr);
  return static_cast<double>(both.negative ? -std::sqrt(square) : std::sqrt(square));
}

void Moments::Write(std::span<int64_t> words) const {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  size_t at = 0;
  const auto put = [&](const auto& sum) {
    for (const uint64_t word : sum.words) words[at++] = static_cast<int64_t>(word);
  };
  words[at++] = count_;
  put(a_);
  if (words.size() == kWordsOfTwo) put(b_);
  put(aa_);
  if (words.size() == kWordsOfOne) return;
  put(bb_);
  put(ab_);
}

Moments Moments::Read(std::span<const int64_t> words) {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  Moments out;
  size_t at = 0;
  const auto take = [&](auto& sum) {
    for (uint64_t& word : sum.words) word = static_cast<uint64_t>(words[at++]);
  };
  out.count_ = words[at++];
  take(out.a_);
  if (words.size() == kWordsOfTwo) take(out.b_);
  take(out.aa_);
  if (words.size() == kWordsOfOne) return out;
  take(out.bb_);
  take(out.ab_);
  return out;
}

}  // namespace nam::execution
