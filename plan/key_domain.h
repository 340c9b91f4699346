#pragma once

#include <bit>
#include <cstdint>

#include "types/hash.h"

namespace nam::plan {

/// Integers of a range that is hardly longer than they are many: keys that count something. Rows go by parts
/// of a permutation of the range instead of a hash, so that what says the part leaves a number that no other
/// key of the part has:
///
///     key ── - low ─▶ n < 2^bits ── permutation ─▶ ├ part ┼ slice ┼ position in the part's table ┤
///
/// A table over a part is then an array, and nothing is compared. Keys at equal distances, which fill the
/// range badly, are spread over the parts as others are.
struct KeyDomain {
  static constexpr uint32_t kBitsMax = 31;

  int64_t low = 0;
  uint32_t bits = 0;  // 0: there is none

  bool known() const { return bits > 0; }
  uint64_t size() const { return uint64_t{1} << bits; }
  /// How far the key lies behind the lowest; not below size(): it is none of the domain.
  uint64_t NumberOf(int64_t key) const { return static_cast<uint64_t>(key) - static_cast<uint64_t>(low); }

  /// A permutation of the numbers below size(), of `number` modulo that.
  uint32_t Permute(uint64_t number) const {
    auto n = static_cast<uint32_t>(number) & mask();
    n ^= n >> (bits / 2 + 1);
    return n * kFactor & mask();
  }
  /// The number that Permute makes `permuted` of.
  uint32_t Inverse(uint32_t permuted) const {
    uint32_t n = permuted * kFactorInverse & mask();
    n ^= n >> (bits / 2 + 1);  // by more than half of the bits: twice is not at all
    return n;
  }
  /// In the place of a key's hash: the permutation is where radix partitions take their bits.
  uint64_t HashOf(uint64_t number) const { return uint64_t{Permute(number)} << (64 - kExchangeBits - bits); }

  bool operator==(const KeyDomain&) const = default;

  static constexpr uint32_t kFactor = 0x9e3779b1;  // odd, and 2^32 by the golden ratio
  static constexpr uint32_t kFactorInverse = 0x0e8b2f51;
  static_assert(kFactor * kFactorInverse == 1);

 private:
  uint32_t mask() const { return static_cast<uint32_t>(size() - 1); }
};

}  // namespace nam::plan
