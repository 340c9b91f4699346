#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "storage/record_block.h"

/// The extents of a record table's rows: which of their chunks is whose, then the blocks.
///
///     extent    word of chunk 0, 1, …   padded to 64 │ block 0 │ block 1 │ …
///     chunk     kChunkRecords blocks in a row
///     number    of a record: extent · records per extent + its place there
///
/// All zeroes: chunks that nobody had, blocks that are free.
namespace nam::txn {

inline constexpr uint64_t kChunkRecords = 256;
/// A chunk of which fewer blocks were freed is not worth looking through.
inline constexpr uint32_t kFreedMin = kChunkRecords / 8;

/// A chunk's word. Changed by CAS and FETCH_ADD.
///
///     had 1 │ 0 16 │ owner 15 │ freed 32
///
/// Nobody's chunk has owner 0. `freed` counts the blocks that were given back, or whose rows were deleted,
/// since an owner last looked; now and then it is too large.
class ChunkWord {
 public:
  constexpr explicit ChunkWord(uint64_t word) : word_(word) {}
  static constexpr ChunkWord OwnedBy(uint32_t client) {
    return ChunkWord(uint64_t{1} << 63 | uint64_t{client} << 32);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool had() const { return word_ >> 63 != 0; }
  constexpr uint32_t owner() const { return static_cast<uint32_t>(word_ >> 32) & 0x7fff; }
  constexpr uint32_t freed() const { return static_cast<uint32_t>(word_); }
  /// Given back: `freed` blocks of it are free.
  constexpr ChunkWord GivenBack(uint32_t freed) const {
    return ChunkWord(uint64_t{1} << 63 | (uint64_t{this->freed()} + freed));
  }

 private:
  uint64_t word_;
};

struct RecordLayout {
  storage::RecordGeometry geometry;
  uint64_t extent_bytes = 0;
  uint64_t chunks = 0;              // of an extent
  uint64_t records_per_extent = 0;  // chunks · kChunkRecords

  static constexpr RecordLayout Of(storage::RecordGeometry geometry, uint64_t extent_bytes) {
    const uint64_t chunk_bytes = kChunkRecords * geometry.block_bytes();
    uint64_t chunks = extent_bytes / chunk_bytes;
    while (chunks > 0 && WordsBytes(chunks) + chunks * chunk_bytes > extent_bytes) --chunks;
    NAM_CHECK(chunks > 0, "an extent has room for a chunk of records");
    return {geometry, extent_bytes, chunks, chunks * kChunkRecords};
  }
  static constexpr uint64_t WordsBytes(uint64_t chunks) { return (chunks * 8 + 63) / 64 * 64; }

  constexpr uint64_t BlockPosition(uint64_t record) const {
    return record / records_per_extent * extent_bytes + WordsBytes(chunks) +
           record % records_per_extent * geometry.block_bytes();
  }
  constexpr uint64_t ChunkOf(uint64_t record) const { return record / kChunkRecords; }
  /// Chunks are numbered across extents, as records are.
  constexpr uint64_t ChunkPosition(uint64_t chunk) const {
    return chunk / chunks * extent_bytes + chunk % chunks * 8;
  }
};

}  // namespace nam::txn
