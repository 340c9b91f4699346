#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/rows/row_layout.h"
#include "plan/key_domain.h"
#include "plan/schema.h"
#include "types/hash.h"

/// Parts of rows at rest: all rows with equal keys are in one part, on whatever server they came up.
namespace nam::execution {

/// PartPages.part of pages whose rows may be of any part.
inline constexpr uint32_t kAnyPart = UINT32_MAX;
inline constexpr uint32_t kPartsMax = 1u << kRadixBits;

/// Which of `parts` (up to kPartsMax) a row is in, by the hash of its keys' values in their order
/// (execution/rows/row_hash.h). Taken from the bits that types/hash.h keeps for radix partitions, 55 and
/// below: the exchange's bits above them stay even within a part, and so do those of tables, the lowest.
inline uint32_t PartOf(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash << kExchangeBits) * parts >> 64);
}

/// What of the hash has not said the part: as even within a part as the hash is at all. Its highest bits say
/// the slice of the part, where one is too large to be looked at as a whole.
inline uint64_t RestOf(uint64_t hash, uint32_t parts) {
  return (hash << kExchangeBits) * parts;
}
/// One of 2^bits slices of a part; equal keys are in one slice.
struct PartSlice {
  uint32_t bits = 0;
  uint32_t number = 0;
};
/// With the part and the table's share of the hash these leave bits that nobody else has looked at.
inline constexpr uint32_t kSliceBitsMax = 10;
/// To the next slice, in the order of hashes; never larger than one of 2^least_bits. False: that was the
/// last.
inline bool GoOn(uint32_t least_bits, PartSlice& slice) {
  while (slice.bits > 0 && slice.number % 2 == 1) slice = {slice.bits - 1, slice.number / 2};
  if (slice.bits == 0) return false;
  ++slice.number;
  for (; slice.bits < least_bits; ++slice.bits) slice.number *= 2;
  return true;
}
/// Whether an error is that memory is used up, so that a smaller slice may fit.
bool IsTooLarge(const absl::Status& status);

inline bool IsIn(PartSlice slice, uint64_t hash, uint32_t parts) {
  return slice.bits == 0 || RestOf(hash, parts) >> (64 - slice.bits) == slice.number;
}

/// What says the part of a row. Who writes rows and who reads them have the same from the plan.
struct PartBy {
  std::vector<uint32_t> keys;  // fields
  uint32_t parts = 1;
  plan::KeyDomain domain = {};  // known: of the only key, a number of up to 8 bytes

  /// What takes the place of the hash (PartOf, RestOf) of the rows at places [place, place + count) of a
  /// page.
  void Hash(const RowLayout& layout, const std::byte* page, uint32_t place, uint32_t count,
            uint64_t* hashes) const;
};

/// The layout of rows that go by parts: follows from the rows and the number of parts, so that who writes
/// them and who reads them agree. A thread has a page open for each part, which stay in its cache together:
/// the more parts, the smaller the pages; but rows with texts have the largest.
///
///     parts   up to 16   32       64       128     256     more
///     page    64 KiB     32 KiB   16 KiB   8 KiB   4 KiB   2 KiB, or what the rows need
absl::StatusOr<RowLayout> PartLayout(const plan::Schema& rows, uint32_t parts);

/// Pages of a part lie in scratch memory in stretches, so that a READ brings several: whole pages one behind
/// the other, the last one maybe packed (packed_page.h). A stretch has at most so many bytes.
uint32_t StretchBytes(const RowLayout& layout);

}  // namespace nam::execution
