#include "execution/aggregate/moments.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

/// A number that is not negative, of so many bits that no formula below overflows: the largest, the square of
/// a covariance's numerator times 4 · 10^76, has 1,015.
class Natural {
 public:
  static constexpr size_t kWords = 17;

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
  /// Of a number that is not smaller than the other.
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
  Natural Shifted(size_t left) const {
    Natural out;
    for (size_t i = 0; i + left / 64 < kWords; ++i) {
      const size_t to = i + left / 64;
      out.words_[to] |= words_[i] << left % 64;
      if (left % 64 != 0 && to + 1 < kWords) out.words_[to + 1] |= words_[i] >> (64 - left % 64);
    }
    return out;
  }
  void SetBit(size_t bit) { words_[bit / 64] |= uint64_t{1} << bit % 64; }
  /// Whole part of the quotient; the divisor is not 0.
  Natural operator/(const Natural& divisor) const {
    Natural quotient, rest = *this;
    while (!(rest < divisor)) {
      size_t shift = rest.bits() - divisor.bits();
      Natural part = divisor.Shifted(shift);
      if (rest < part) part = divisor.Shifted(--shift);
      rest = rest - part;
      quotient.SetBit(shift);
    }
    return quotient;
  }
  /// Whole part of the root, a bit at a time.
  Natural Root() const {
    Natural root;
    for (size_t bit = (bits() + 1) / 2 + 1; bit-- > 0;) {
      Natural next = root;
      next.SetBit(bit);
      if (!(*this < next * next)) root = next;
    }
    return root;
  }
  /// Nothing if it has more than 126 bits.
  std::optional<__int128> number() const {
    if (bits() > 126) return std::nullopt;
    return static_cast<__int128>(static_cast<unsigned __int128>(words_[1]) << 64 | words_[0]);
  }

 private:
  std::array<uint64_t, kWords> words_ = {};
};

Natural TenTo(int exponent) {
  Natural out(1);
  for (; exponent > 0; exponent -= 18) {
    uint64_t power = 1;
    for (int i = 0; i < std::min(exponent, 18); ++i) power *= 10;
    out = out * Natural(power);
  }
  return out;
}

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

/// above · 10^power / below.
Natural Quotient(Natural above, Natural below, int power) {
  (power >= 0 ? above : below) = (power >= 0 ? above : below) * TenTo(std::abs(power));
  return above / below;
}

absl::StatusOr<std::optional<__int128>> Signed(const Natural& magnitude, bool negative) {
  const std::optional<__int128> number = magnitude.number();
  if (!number || !FitsDecimal(*number)) return NumberOutOfRange(-1);
  return negative ? -*number : *number;
}

/// Of 2 · value, or of the root of 4 · value, cut off: the value, or its root, half away from zero.
Natural Halved(const Natural& twice) {
  return (twice + Natural(1)) / Natural(2);
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

void Moments::Take(__int128 x, __int128 y, bool leaves) {
  count_ += leaves ? -1 : 1;
  const auto take = [leaves](auto& sum, const auto& by) { sum.Add(leaves ? by.Negative() : by); };
  take(x_, Extended<3>(x));
  take(xx_, Product(x, x));
  if (y == 0) return;
  take(y_, Extended<3>(y));
  take(yy_, Product(y, y));
  take(xy_, Product(x, y));
}

void Moments::Merge(const Moments& other) {
  count_ += other.count_;
  x_.Add(other.x_);
  y_.Add(other.y_);
  xx_.Add(other.xx_);
  yy_.Add(other.yy_);
  xy_.Add(other.xy_);
}

absl::StatusOr<std::optional<__int128>> Moments::Result(AggregateFunction function, int scale_x, int scale_y,
                                                        int scale) const {
  const bool sample = function == AggregateFunction::kVarSamp || function == AggregateFunction::kStddevSamp ||
                      function == AggregateFunction::kCovarSamp;
  if (count_ < (sample ? 2 : 1)) return std::optional<__int128>();
  const Natural below =
      Natural(static_cast<uint64_t>(count_)) * Natural(static_cast<uint64_t>(count_ - sample));
  switch (function) {
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp: {
      const Natural above = Difference(Times(count_, xx_), Times(x_, x_)).magnitude;
      return Signed(Halved(Quotient(above * Natural(2), below, scale - 2 * scale_x)), false);
    }
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp: {
      const Natural above = Difference(Times(count_, xx_), Times(x_, x_)).magnitude;
      return Signed(Halved(Quotient(above * Natural(4), below, 2 * scale - 2 * scale_x).Root()), false);
    }
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp: {
      const Whole above = Difference(Times(count_, xy_), Times(x_, y_));
      return Signed(Halved(Quotient(above.magnitude * Natural(2), below, scale - scale_x - scale_y)),
                    above.negative);
    }
    default: {
      NAM_CHECK(function == AggregateFunction::kCorr);
      const Natural of_x = Difference(Times(count_, xx_), Times(x_, x_)).magnitude;
      const Natural of_y = Difference(Times(count_, yy_), Times(y_, y_)).magnitude;
      if (of_x.zero() || of_y.zero()) return std::optional<__int128>();
      const Whole both = Difference(Times(count_, xy_), Times(x_, y_));
      const Natural square = both.magnitude * both.magnitude;
      return Signed(Halved(Quotient(square * Natural(4), of_x * of_y, 2 * scale).Root()), both.negative);
    }
  }
}

void Moments::Write(std::span<int64_t> words) const {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  size_t at = 0;
  const auto put = [&](const auto& sum) {
    for (const uint64_t word : sum.words) words[at++] = static_cast<int64_t>(word);
  };
  words[at++] = count_;
  put(x_);
  if (words.size() == kWordsOfTwo) put(y_);
  put(xx_);
  if (words.size() == kWordsOfOne) return;
  put(yy_);
  put(xy_);
}

Moments Moments::Read(std::span<const int64_t> words) {
  NAM_CHECK(words.size() == kWordsOfOne || words.size() == kWordsOfTwo);
  Moments out;
  size_t at = 0;
  const auto take = [&](auto& sum) {
    for (uint64_t& word : sum.words) word = static_cast<uint64_t>(words[at++]);
  };
  out.count_ = words[at++];
  take(out.x_);
  if (words.size() == kWordsOfTwo) take(out.y_);
  take(out.xx_);
  if (words.size() == kWordsOfOne) return out;
  take(out.yy_);
  take(out.xy_);
  return out;
}

}  // namespace nam::execution
