#pragma once

#include <cstdint>

namespace nam::ssb {

/// The finalizer of splitmix64: a bijection whose output bits all depend on all input bits.
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

/// One random word, spent piece by piece. Each Below() takes the word's topmost part and keeps the rest,
/// without a division; pieces are uniform and independent while the product of all n is far below 2^64.
class RandomDigits {
 public:
  explicit constexpr RandomDigits(uint64_t word) : rest_(word) {}
  constexpr uint32_t Below(uint32_t n) {
    const unsigned __int128 product = static_cast<unsigned __int128>(rest_) * n;
    rest_ = static_cast<uint64_t>(product);
    return static_cast<uint32_t>(product >> 64);
  }
  /// low … high, both included.
  constexpr uint32_t Between(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }

 private:
  uint64_t rest_;
};

/// Random words that are a function of (key, row, word) alone, so that any row can be made on its own.
class RowRandom {
 public:
  constexpr RowRandom(uint64_t key, uint64_t row) : state_(MixBits(key + row * kGoldenGamma)) {}
  constexpr RandomDigits Word(uint64_t i) const {
    return RandomDigits(MixBits(state_ + (i + 1) * kGoldenGamma));
  }

 private:
  uint64_t state_;
};

}  // namespace nam::ssb
