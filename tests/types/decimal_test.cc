#include "types/decimal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace nam {
namespace {

/// Integers of any length, digit by digit: the reference.
class Big {
 public:
  explicit Big(__int128 n) : negative_(n < 0) {
    for (unsigned __int128 m = n < 0 ? -static_cast<unsigned __int128>(n) : static_cast<unsigned __int128>(n);
         m != 0; m /= 10) {
      digits_.push_back(static_cast<int>(m % 10));
    }
  }

  Big Shifted(int zeros) const {
    Big shifted = *this;
    if (!digits_.empty()) shifted.digits_.insert(shifted.digits_.begin(), static_cast<size_t>(zeros), 0);
    return shifted;
  }

  Big operator*(const Big& other) const {
    Big product(0);
    product.negative_ = negative_ != other.negative_;
    product.digits_.assign(digits_.size() + other.digits_.size(), 0);
    for (size_t i = 0; i < digits_.size(); ++i) {
      for (size_t j = 0; j < other.digits_.size(); ++j)
        product.digits_[i + j] += digits_[i] * other.digits_[j];
    }
    product.Normalize();
    return product;
  }

  Big operator+(const Big& other) const {
    if (negative_ != other.negative_) {
      const bool larger = !Less(digits_, other.digits_);
      const Big& big = larger ? *this : other;
      const Big& small = larger ? other : *this;
      Big difference = big;
      for (size_t i = 0; i < small.digits_.size(); ++i) difference.digits_[i] -= small.digits_[i];
      difference.Normalize();
      return difference;
    }
    Big sum = *this;
    sum.digits_.resize(std::max(digits_.size(), other.digits_.size()), 0);
    for (size_t i = 0; i < other.digits_.size(); ++i) sum.digits_[i] += other.digits_[i];
    sum.Normalize();
    return sum;
  }

  Big Magnitude() const {
    Big m = *this;
    m.negative_ = false;
    return m;
  }

  Big operator-() const {
    Big m = *this;
    m.negative_ = !m.negative_ && !m.digits_.empty();
    return m;
  }

  bool Fits() const { return digits_.size() <= kMaxDecimalDigits; }
  bool operator==(const Big&) const = default;
  bool operator<(const Big& other) const { return (*this + -other).negative_; }

 private:
  static bool Less(const std::vector<int>& a, const std::vector<int>& b) {
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  }

  void Normalize() {
    int carry = 0;
    for (size_t i = 0; i < digits_.size() || carry != 0; ++i) {
      if (i == digits_.size()) digits_.push_back(0);
      int digit = digits_[i] + carry;
      carry = digit >= 0 ? digit / 10 : -((9 - digit) / 10);
      digits_[i] = digit - carry * 10;
    }
    while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
    if (digits_.empty()) negative_ = false;
  }

  bool negative_ = false;
  std::vector<int> digits_;  // lowest first, no zeros on top
};

/// Any number of digits up to 38, with short and long numbers equally likely.
rc::Gen<std::string> Digits() {
  return rc::gen::mapcat(rc::gen::inRange(1, 39), [](int count) {
    return rc::gen::container<std::string>(static_cast<size_t>(count),
                                           rc::gen::elementOf(std::string("0123456789995")));
  });
}

__int128 Number(const std::string& digits, bool negative) {
  __int128 n = 0;
  for (const char c : digits) n = n * 10 + (c - '0');
  return negative ? -n : n;
}

__int128 ArbitraryNumber() {
  const std::string digits = *Digits();
  return Number(digits, *rc::gen::arbitrary<bool>());
}

int ArbitraryScale() {
  return *rc::gen::inRange(0, kMaxDecimalDigits + 1);
}

RC_GTEST_PROP(DecimalProperty, Add, ()) {
  const __int128 a = ArbitraryNumber(), b = ArbitraryNumber();
  const int sa = ArbitraryScale(), sb = ArbitraryScale();
  const int scale = std::max(sa, sb);
  const Big exact = Big(a).Shifted(scale - sa) + Big(b).Shifted(scale - sb);
  const auto sum = AddDecimals(a, sa, b, sb);
  RC_ASSERT(sum.has_value() == exact.Fits());
  if (sum.has_value()) RC_ASSERT(Big(*sum) == exact);
}

RC_GTEST_PROP(DecimalProperty, Multiply, ()) {
  const __int128 a = ArbitraryNumber(), b = ArbitraryNumber();
  const Big exact = Big(a) * Big(b);
  const auto product = MultiplyDecimals(a, b);
  RC_ASSERT(product.has_value() == exact.Fits());
  if (product.has_value()) RC_ASSERT(Big(*product) == exact);
}

/// q = round(n / d), half away from zero, exactly when 2·|q·d - n| ≤ |d|, and on a tie |q·d| > |n|.
bool Rounds(const Big& q, const Big& n, const Big& d) {
  const Big error = ((q * d) + -n).Magnitude() * Big(2);
  if (error == d.Magnitude()) return n.Magnitude() < (q * d).Magnitude();
  return error < d.Magnitude();
}

RC_GTEST_PROP(DecimalProperty, Rescale, ()) {
  const __int128 n = ArbitraryNumber();
  const int from = ArbitraryScale(), to = ArbitraryScale();
  const auto scaled = Rescale(n, from, to);
  if (to >= from) {
    const Big exact = Big(n).Shifted(to - from);
    RC_ASSERT(scaled.has_value() == exact.Fits());
    if (scaled.has_value()) RC_ASSERT(Big(*scaled) == exact);
  } else {
    RC_ASSERT(scaled.has_value());
    RC_ASSERT(Rounds(Big(*scaled), Big(n), Big(PowerOfTen(from - to))));
  }
}

TEST(DecimalTest, Edges) {
  const __int128 most = PowerOfTen(38) - 1;
  EXPECT_EQ(AddDecimals(most, 0, 1, 0), std::nullopt);
  EXPECT_EQ(AddDecimals(18, 0, -most, 37), std::optional<__int128>(8 * PowerOfTen(37) + 1));
  EXPECT_EQ(Rescale(5, 1, 0), std::optional<__int128>(1));
  EXPECT_EQ(Rescale(-5, 1, 0), std::optional<__int128>(-1));
  EXPECT_EQ(Rescale(most, 1, 0), std::optional<__int128>(PowerOfTen(37)));
  EXPECT_EQ(Rescale(0, 0, 38), std::optional<__int128>(0));
}

}  // namespace
}  // namespace nam
