#pragma once

#include <bit>
#include <cstdint>

#include "types/hash.h"

namespace nam::plan {

/// A range of integers hardly longer than the number of keys in it: keys that count something. Rows go by
/// parts of a permutation of the range instead of a hash. So the bits that do not choose the part are a
/// number that no other key of the part has:
///
///     key ── - low ─▶ n < 2^bits ── permutation ─▶ ├ part ┼ slice ┼ position in the part's table ┤
///
/// A table over a part is then an array, and probes compare nothing. Keys at equal distances, which fill the
/// range badly, are spread over the parts like others.
struct KeyDomain {
  static constexpr uint32_t kBitsMax = 31;

  int64_t low = 0;
  uint32_t bits = 0;  // 0: no domain

  bool known() const { return bits > 0; }
  uint64_t size() const { return uint64_t{1} << bits; }
  /// The key's distance from the lowest; below size() unless the key is outside of the domain.
  uint64_t NumberOf(int64_t key) const { return static_cast<uint64_t>(key) - static_cast<uint64_t>(low); }

  /// Permutes the numbers below size(); `number` counts modulo that.
  uint32_t Permute(uint64_t number) const {
    auto n = static_cast<uint32_t>(number) & mask();
    n ^= n >> (bits / 2 + 1);
    return n * kFactor & mask();
  }
  /// The inverse of Permute.
  uint32_t Inverse(uint32_t permuted) const {
    uint32_t n = permuted * kFactorInverse & mask();
    n ^= n >> (bits / 2 + 1);  // by more than half of the bits: its own inverse
    return n;
  }
  /// Replaces a key's hash: has the permutation where radix partitions take their bits.
  uint64_t HashOf(uint64_t number) const { return uint64_t{Permute(number)} << (64 - kExchangeBits - bits); }

  bool operator==(const KeyDomain&) const = default;

  static constexpr uint32_t kFactor = 0x9e3779b1;  // odd, and 2^32 by the golden ratio
  static constexpr uint32_t kFactorInverse = 0x0e8b2f51;
  static_assert(kFactor * kFactorInverse == 1);

 private:
  uint32_t mask() const { return static_cast<uint32_t>(size() - 1); }
};

}  // namespace nam::plan
