#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/check.h"

/// Unsigned integers of 256 bits and more, without allocation.
namespace nam {

/// `kWords` · 64 bits. Sums and differences wrap around; products and shifts that do not fit are broken
/// invariants.
template <int kWords>
struct Wide {
  std::array<uint64_t, kWords> words{};  // the lowest first

  constexpr Wide() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): every number of 128 bits is one of more.
  constexpr Wide(unsigned __int128 n) {
    words[0] = static_cast<uint64_t>(n);
    words[1] = static_cast<uint64_t>(n >> 64);
  }
  template <int kOther>
  constexpr explicit Wide(const Wide<kOther>& other) {
    for (int i = 0; i < std::min(kWords, kOther); ++i) words[i] = other.words[i];
    for (int i = kWords; i < kOther; ++i) NAM_CHECK(other.words[i] == 0);
  }
  /// In two's complement.
  static constexpr Wide OfSigned(__int128 n) {
    Wide out(static_cast<unsigned __int128>(n));
    for (int i = 2; i < kWords; ++i) out.words[i] = n < 0 ? ~uint64_t{0} : 0;
    return out;
  }

  bool operator==(const Wide&) const = default;
  friend constexpr bool operator<(const Wide& a, const Wide& b) {
    for (int i = kWords - 1; i >= 0; --i)
      if (a.words[i] != b.words[i]) return a.words[i] < b.words[i];
    return false;
  }
  friend constexpr bool operator>=(const Wide& a, const Wide& b) { return !(a < b); }

  constexpr bool zero() const { return *this == Wide(); }
  /// In two's complement.
  constexpr bool negative() const { return words[kWords - 1] >> 63 != 0; }
  /// The words without zeros at the top.
  constexpr int length() const {
    int n = kWords;
    while (n > 0 && words[n - 1] == 0) --n;
    return n;
  }
  constexpr int bits() const {
    const int n = length();
    return n == 0 ? 0 : 64 * n - std::countl_zero(words[n - 1]);
  }
  constexpr unsigned __int128 low() const {
    return static_cast<unsigned __int128>(words[1]) << 64 | words[0];
  }

  friend constexpr Wide operator+(const Wide& a, const Wide& b) {
    Wide out;
    unsigned __int128 carry = 0;
    for (int i = 0; i < kWords; ++i) {
      carry += static_cast<unsigned __int128>(a.words[i]) + b.words[i];
      out.words[i] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
    return out;
  }
  friend constexpr Wide operator-(const Wide& a, const Wide& b) {
    Wide out;
    uint64_t borrow = 0;
    for (int i = 0; i < kWords; ++i) {
      const unsigned __int128 difference = static_cast<unsigned __int128>(a.words[i]) - b.words[i] - borrow;
      out.words[i] = static_cast<uint64_t>(difference);
      borrow = static_cast<uint64_t>(difference >> 64) & 1;
    }
    return out;
  }
  /// In two's complement.
  constexpr Wide operator-() const { return Wide() - *this; }
  friend constexpr Wide operator*(const Wide& a, const Wide& b) {
    Wide out;
    const int n = a.length(), m = b.length();
    for (int i = 0; i < n; ++i) {
      uint64_t carry = 0;
      for (int j = 0; j < m; ++j) {
        if (i + j >= kWords) {
          NAM_CHECK(carry == 0);
          break;
        }
        const unsigned __int128 sum =
            static_cast<unsigned __int128>(a.words[i]) * b.words[j] + out.words[i + j] + carry;
        out.words[i + j] = static_cast<uint64_t>(sum);
        carry = static_cast<uint64_t>(sum >> 64);
      }
      if (i + m < kWords) {
        out.words[i + m] = carry;
      } else {
        NAM_CHECK(carry == 0);
      }
    }
    return out;
  }
  /// Bits that leave the top are lost.
  constexpr Wide operator<<(int shift) const {
    Wide out;
    const int whole = shift / 64, rest = shift % 64;
    for (int i = kWords - 1; i >= whole; --i) {
      out.words[i] = words[i - whole] << rest;
      if (rest != 0 && i > whole) out.words[i] |= words[i - whole - 1] >> (64 - rest);
    }
    return out;
  }
  constexpr Wide operator>>(int shift) const {
    Wide out;
    const int whole = shift / 64, rest = shift % 64;
    for (int i = 0; i + whole < kWords; ++i) {
      out.words[i] = words[i + whole] >> rest;
      if (rest != 0 && i + whole + 1 < kWords) out.words[i] |= words[i + whole + 1] << (64 - rest);
    }
    return out;
  }
};

template <int kWords>
struct WideQuotient {
  Wide<kWords> quotient, remainder;
};

namespace internal {

/// Subtracts digit · divisor · 2^(64 · at) from `rest`. True if the difference is negative, modulo 2^64 to
/// the power of its words.
template <int kWords>
bool SubtractProduct(Wide<kWords + 1>& rest, const Wide<kWords>& divisor, int length, uint64_t digit,
                     int at) {
  uint64_t carry = 0, borrow = 0;
  for (int j = 0; j <= length; ++j) {
    const unsigned __int128 product =
        static_cast<unsigned __int128>(digit) * (j < length ? divisor.words[j] : 0) + carry;
    carry = static_cast<uint64_t>(product >> 64);
    const unsigned __int128 difference =
        static_cast<unsigned __int128>(rest.words[at + j]) - static_cast<uint64_t>(product) - borrow;
    rest.words[at + j] = static_cast<uint64_t>(difference);
    borrow = static_cast<uint64_t>(difference >> 64) & 1;
  }
  return borrow != 0;
}

template <int kWords>
void AddBack(Wide<kWords + 1>& rest, const Wide<kWords>& divisor, int length, int at) {
  unsigned __int128 sum = 0;
  for (int j = 0; j <= length; ++j) {
    sum += static_cast<unsigned __int128>(rest.words[at + j]) + (j < length ? divisor.words[j] : 0);
    rest.words[at + j] = static_cast<uint64_t>(sum);
    sum >>= 64;
  }
}

template <int kWords>
WideQuotient<kWords> DivideByWord(const Wide<kWords>& a, uint64_t b) {
  WideQuotient<kWords> out;
  unsigned __int128 rest = 0;
  for (int i = a.length() - 1; i >= 0; --i) {
    rest = rest << 64 | a.words[i];
    out.quotient.words[i] = static_cast<uint64_t>(rest / b);
    rest %= b;
  }
  out.remainder = Wide<kWords>(rest);
  return out;
}

}  // namespace internal

/// Long division by words (Knuth's algorithm D); `b` is not 0.
template <int kWords>
WideQuotient<kWords> Divide(const Wide<kWords>& a, const Wide<kWords>& b) {
  NAM_CHECK(!b.zero());
  if (a < b) return {{}, a};
  const int n = b.length();
  if (a.length() <= 2) return {a.low() / b.low(), a.low() % b.low()};
  if (n == 1) return internal::DivideByWord(a, b.words[0]);
  // With the divisor's highest bit set, a digit estimated by two words is too large by 1 at most.
  const int shift = std::countl_zero(b.words[n - 1]);
  const Wide<kWords> divisor = b << shift;
  Wide<kWords + 1> rest = Wide<kWords + 1>(a) << shift;
  const uint64_t first = divisor.words[n - 1], second = divisor.words[n - 2];
  WideQuotient<kWords> out;
  for (int i = a.length() - n; i >= 0; --i) {
    const auto top = static_cast<unsigned __int128>(rest.words[i + n]) << 64 | rest.words[i + n - 1];
    unsigned __int128 digit = rest.words[i + n] >= first ? ~uint64_t{0} : top / first;
    unsigned __int128 left = top - digit * first;
    while (left >> 64 == 0 && digit * second > (left << 64 | rest.words[i + n - 2])) {
      --digit;
      left += first;
    }
    if (internal::SubtractProduct(rest, divisor, n, static_cast<uint64_t>(digit), i)) {
      --digit;
      internal::AddBack(rest, divisor, n, i);
    }
    out.quotient.words[i] = static_cast<uint64_t>(digit);
  }
  out.remainder = Wide<kWords>(rest >> shift);
  return out;
}

/// The largest power of ten of 256 bits.
inline constexpr int kMaxWidePower = 77;

namespace internal {
constexpr std::array<Wide<4>, kMaxWidePower + 1> WidePowers() {
  std::array<Wide<4>, kMaxWidePower + 1> out;
  out[0] = Wide<4>(1);
  for (int i = 1; i <= kMaxWidePower; ++i) out[i] = (out[i - 1] << 3) + (out[i - 1] << 1);
  return out;
}
inline constexpr std::array<Wide<4>, kMaxWidePower + 1> kWidePowers = WidePowers();
}  // namespace internal

template <int kWords>
constexpr Wide<kWords> WidePowerOfTen(int exponent) {
  NAM_CHECK(exponent >= 0);
  Wide<kWords> out(internal::kWidePowers[std::min(exponent, kMaxWidePower)]);
  while ((exponent -= kMaxWidePower) > 0)
    out = out * Wide<kWords>(internal::kWidePowers[std::min(exponent, kMaxWidePower)]);
  return out;
}

/// The number of decimal digits; 0 of 0.
template <int kWords>
int DigitsOf(const Wide<kWords>& n) {
  const int bits = n.bits();
  if (bits == 0) return 0;
  const int digits = ((bits - 1) * 1233 >> 12) + 1;  // by log10(2), or one more
  return digits + (n >= WidePowerOfTen<kWords>(digits) ? 1 : 0);
}

/// The largest whole number whose square is at most `n`.
template <int kWords>
Wide<kWords> SquareRootOf(const Wide<kWords>& n) {
  if (n.zero()) return n;
  // Newton's steps from above fall until they are there.
  Wide<kWords> root = Wide<kWords>(1) << ((n.bits() + 1) / 2);
  for (;;) {
    const Wide<kWords> next = (root + Divide(n, root).quotient) >> 1;
    if (next >= root) return root;
    root = next;
  }
}

}  // namespace nam
