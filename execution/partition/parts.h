#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/rows/row_layout.h"
#include "plan/key_domain.h"
#include "plan/schema.h"
#include "types/hash.h"

/// Parts of rows at rest: all rows with equal keys are in one part, whichever server produced them.
namespace nam::execution {

inline constexpr uint32_t kPartsMax = 1u << kRadixBits;

/// The part of a row, of `parts` (up to kPartsMax), by the hash of its keys' values in their order
/// (execution/rows/row_hash.h). Uses the bits that types/hash.h reserves for radix partitions, 55 and below.
/// So the exchange's bits above them, and the lowest bits, which tables use, stay even within a part.
inline uint32_t PartOf(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash << kExchangeBits) * parts >> 64);
}

/// The rest of the hash, which did not decide the part: as even within a part as the hash itself. Its highest
/// bits select the slice if a part is too large to process as a whole.
inline uint64_t RestOf(uint64_t hash, uint32_t parts) {
  return (hash << kExchangeBits) * parts;
}
/// One of 2^bits slices of a part; equal keys are in one slice.
struct PartSlice {
  uint32_t bits = 0;
  uint32_t number = 0;
};
/// With the part and the table's share of the hash this leaves unused bits.
inline constexpr uint32_t kSliceBitsMax = 10;
/// Advances to the next slice, in the order of hashes; never larger than one of 2^least_bits. False: that was
/// the last.
inline bool AdvanceSlice(uint32_t least_bits, PartSlice& slice) {
  while (slice.bits > 0 && slice.number % 2 == 1) slice = {slice.bits - 1, slice.number / 2};
  if (slice.bits == 0) return false;
  ++slice.number;
  for (; slice.bits < least_bits; ++slice.bits) slice.number *= 2;
  return true;
}
/// Whether an error means that memory is used up, so that a smaller slice may fit.
bool IsTooLarge(const absl::Status& status);

inline bool IsIn(PartSlice slice, uint64_t hash, uint32_t parts) {
  return slice.bits == 0 || RestOf(hash, parts) >> (64 - slice.bits) == slice.number;
}

/// What decides the part of a row. The plan gives writers and readers the same.
struct PartBy {
  std::vector<uint32_t> keys;  // fields
  uint32_t parts = 1;
  plan::KeyDomain domain = {};  // known: the only key's, a number of up to 8 bytes

  /// Computes the rows' hashes or their replacements (PartOf, RestOf), at places [place, place + count) of a
  /// page.
  void Hash(const RowLayout& layout, const std::byte* page, uint32_t place, uint32_t count,
            uint64_t* hashes) const;
};

/// The layout of rows that go by parts. It follows from the rows and the number of parts, so that writers and
/// readers agree. A thread has a page open for each part, and these stay in its cache together: the more
/// parts, the smaller the pages; but rows with texts have the largest.
///
///     parts   up to 16   32       64       128     256     more
///     page    64 KiB     32 KiB   16 KiB   8 KiB   4 KiB   2 KiB, or what the rows need
absl::StatusOr<RowLayout> PartLayout(const plan::Schema& rows, uint32_t parts);

/// The most bytes of a stretch. Pages of a part lie in scratch memory in stretches, so that a READ brings
/// several: consecutive whole pages, the last one perhaps packed (packed_page.h).
uint32_t StretchBytes(const RowLayout& layout);

}  // namespace nam::execution
