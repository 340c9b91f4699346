#pragma once

#include <cstdint>

#include "base/random.h"

namespace nam::dataset {

/// One random word, consumed in pieces. Each Below() takes the topmost part of the word and keeps the rest,
/// without a division. Pieces are uniform and independent while the product of all n is far below 2^64.
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

/// Random words that depend on (key, row, word) alone, so that any row can be generated separately.
class RowRandom {
 public:
  constexpr RowRandom(uint64_t key, uint64_t row) : state_(MixBits(key + row * kGoldenGamma)) {}
  constexpr RandomDigits Word(uint64_t i) const {
    return RandomDigits(MixBits(state_ + (i + 1) * kGoldenGamma));
  }

 private:
  uint64_t state_;
};

}  // namespace nam::dataset
