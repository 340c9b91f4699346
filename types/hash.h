#pragma once

#include <cstdint>
#include <string_view>

/// The one hash over values: equal for equal values, whatever width or encoding they have on a server, and
/// the same on all servers. Partitions in scratch memory and messages depend on it: it never changes.
///
///     bit  63      56 55                40 39                              0
///          ├ exchange ┼ radix partitions ───┼ positions in tables: the lowest ┤
///
/// so that what one of them has divided the next still divides evenly.
namespace nam {

namespace hash_internal {

inline constexpr uint64_t kSecret[2] = {0x2d358dccaa6c78a5, 0x8bb84b93962eacc9};

/// wyhash's step over two words: two multiplications, both halves of each product used.
inline uint64_t Fold(uint64_t a, uint64_t b) {
  const auto first = static_cast<unsigned __int128>(a ^ kSecret[0]) * (b ^ kSecret[1]);
  const auto second = static_cast<unsigned __int128>(static_cast<uint64_t>(first) ^ kSecret[0]) *
                      (static_cast<uint64_t>(first >> 64) ^ kSecret[1]);
  return static_cast<uint64_t>(second) ^ static_cast<uint64_t>(second >> 64);
}

}  // namespace hash_internal

/// Booleans (0 and 1), integers, dates, timestamps, and decimals at the scale of their type: numbers that are
/// compared have been brought to one scale before.
inline uint64_t HashNumber(int64_t n) {
  return hash_internal::Fold(static_cast<uint64_t>(n), 0);
}
/// That of the same number in 64 bits, if it fits.
inline uint64_t HashNumber(__int128 n) {
  if (n == static_cast<int64_t>(n)) return HashNumber(static_cast<int64_t>(n));
  return hash_internal::Fold(static_cast<uint64_t>(n), static_cast<uint64_t>(n >> 64) ^ 0x5555555555555555);
}

/// XXH3 over the bytes. Values of char(n) have lost the blanks at their end before.
uint64_t HashText(std::string_view text);

/// NULLs are one group.
inline constexpr uint64_t kHashOfNull = 0x9e3779b97f4a7c15;

/// The hash of several values: `a` is that of those before, `b` of the next. The order counts.
inline uint64_t CombineHashes(uint64_t a, uint64_t b) {
  return hash_internal::Fold(a, b);
}
/// The hash of no values at all.
inline constexpr uint64_t kHashOfNothing = 0;

inline constexpr uint32_t kExchangePartsMax = 256;
inline constexpr int kExchangeBits = 8, kRadixBits = 16;

/// Which of `parts` (at most kExchangePartsMax) a row goes to.
inline uint32_t ExchangePart(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash) * parts >> 64);
}
/// Radix partitioning: the next `bits` bits after `done` bits of earlier passes; at most kRadixBits together,
/// at least one.
inline uint32_t RadixPart(uint64_t hash, int done, int bits) {
  return static_cast<uint32_t>(hash << (kExchangeBits + done) >> (64 - bits));
}

}  // namespace nam
