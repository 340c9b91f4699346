#pragma once

#include <cstdint>
#include <string_view>

/// The single hash over values: equal for equal values regardless of width and encoding, and the same on all
/// servers. Partitions in scratch memory and messages depend on it: it must never change.
///
///     bit  63      56 55                40 39                              0
///          ├ exchange ┼ radix partitions ───┼ positions in tables: the lowest ┤
///
/// so each use gets even shares of what the previous one has divided.
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

/// Hashes booleans (0 and 1), integers, dates, timestamps, and decimals at their type's scale: numbers must
/// be brought to one scale before they are compared.
inline uint64_t HashNumber(int64_t n) {
  return hash_internal::Fold(static_cast<uint64_t>(n), 0);
}
/// Equals the 64-bit hash if the number fits.
inline uint64_t HashNumber(__int128 n) {
  if (n == static_cast<int64_t>(n)) return HashNumber(static_cast<int64_t>(n));
  return hash_internal::Fold(static_cast<uint64_t>(n), static_cast<uint64_t>(n >> 64) ^ 0x5555555555555555);
}

/// XXH3 over the bytes. Values of char(n) must have lost their trailing blanks.
uint64_t HashText(std::string_view text);

/// All NULLs form one group.
inline constexpr uint64_t kHashOfNull = 0x9e3779b97f4a7c15;

/// Combines hashes of several values: `a` of the previous ones, `b` of the next. Order matters.
inline uint64_t CombineHashes(uint64_t a, uint64_t b) {
  return hash_internal::Fold(a, b);
}
/// The hash of zero values.
inline constexpr uint64_t kHashOfNothing = 0;

inline constexpr uint32_t kExchangePartsMax = 256;
inline constexpr int kExchangeBits = 8, kRadixBits = 16;

/// The part, out of `parts` (at most kExchangePartsMax), that a row goes to.
inline uint32_t ExchangePart(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash) * parts >> 64);
}
/// Radix partitioning: the next `bits` bits after the `done` bits of earlier passes; at least one bit, and at
/// most kRadixBits in total.
inline uint32_t RadixPart(uint64_t hash, int done, int bits) {
  return static_cast<uint32_t>(hash << (kExchangeBits + done) >> (64 - bits));
}

}  // namespace nam
