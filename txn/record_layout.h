#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "storage/record_block.h"

/// The layout of a record table's extents: the owners of their chunks, then the blocks.
///
///     extent    word of chunk 0, 1, …  padded to 64 │ block 0 │ block 1 │ …
///     chunk     kChunkRecords blocks in a row
///     number    of a record:  extent │ chunk │ block 8      of a chunk:  extent │ chunk
///
/// `chunk` has as many bits as an extent's chunks need, and extents are a power of two: shifts and one
/// multiplication turn a number into an address. Numbers between an extent's last chunk and the next extent
/// name no record. All zeroes: unowned chunks of free blocks. A short extent (txn/extent_space.h) has the
/// words of all chunks, and the first chunks.
namespace nam::txn {

inline constexpr int kChunkRecordBits = 8;
inline constexpr uint64_t kChunkRecords = uint64_t{1} << kChunkRecordBits;
/// The freed blocks that make a chunk worth searching.
inline constexpr uint32_t kFreedMin = kChunkRecords / 8;

/// A chunk's word. Clients change it by CAS and FETCH_ADD.
///
///     had 1 │ owner 15 │ freed 48
///
/// An unowned chunk has owner 0. `freed` counts the blocks that were given back, or whose rows were deleted,
/// since an owner last looked. It counts a block again each time its row is deleted: at a million a second it
/// would reach the owner bits in nine years.
class ChunkWord {
 public:
  constexpr explicit ChunkWord(uint64_t word) : word_(word) {}
  static constexpr ChunkWord OwnedBy(uint32_t client) {
    return ChunkWord(uint64_t{1} << 63 | uint64_t{client} << kOwnerShift);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool had() const { return word_ >> 63 != 0; }
  constexpr uint32_t owner() const { return static_cast<uint32_t>(word_ >> kOwnerShift) & 0x7fff; }
  constexpr uint64_t freed() const { return word_ & ((uint64_t{1} << kOwnerShift) - 1); }
  /// The addend that gives a chunk of `client` back with `freed` more free blocks.
  static constexpr uint64_t GiveBackAddend(uint32_t client, uint64_t freed) {
    return freed - (uint64_t{client} << kOwnerShift);
  }

 private:
  static constexpr int kOwnerShift = 48;
  uint64_t word_;
};

struct RecordLayout {
  storage::RecordGeometry geometry;
  uint64_t extent_bytes = 0;
  uint64_t chunks = 0;              // per extent
  uint64_t records_per_extent = 0;  // chunks · kChunkRecords
  int extent_shift = 0;
  int chunk_bits = 0;        // in a number
  uint64_t first_block = 0;  // after the chunks' words
  uint64_t block_bytes = 0;  // the geometry's

  static constexpr RecordLayout Of(storage::RecordGeometry geometry, uint64_t extent_bytes) {
    NAM_CHECK(std::has_single_bit(extent_bytes), "extents are of a power of two");
    const uint64_t chunk_bytes = kChunkRecords * geometry.block_bytes();
    uint64_t chunks = extent_bytes / chunk_bytes;
    while (chunks > 0 && WordsBytes(chunks) + chunks * chunk_bytes > extent_bytes) --chunks;
    NAM_CHECK(chunks > 0, "an extent has room for a chunk of records");
    return {.geometry = geometry,
            .extent_bytes = extent_bytes,
            .chunks = chunks,
            .records_per_extent = chunks * kChunkRecords,
            .extent_shift = std::countr_zero(extent_bytes),
            .chunk_bits = static_cast<int>(std::bit_width(chunks - 1)),
            .first_block = WordsBytes(chunks),
            .block_bytes = geometry.block_bytes()};
  }
  static constexpr uint64_t WordsBytes(uint64_t chunks) { return (chunks * 8 + 63) / 64 * 64; }

  constexpr uint64_t BlockPosition(uint64_t record) const {
    const int bits = chunk_bits + kChunkRecordBits;
    return (record >> bits << extent_shift) + first_block + LowBits(record, bits) * block_bytes;
  }
  /// The chunks of an extent of which only the first `bytes` exist.
  constexpr uint64_t ChunksIn(uint64_t bytes) const {
    if (bytes < first_block) return 0;
    return std::min(chunks, (bytes - first_block) / (kChunkRecords * block_bytes));
  }
  constexpr uint64_t ExtentOf(uint64_t record) const { return record >> (chunk_bits + kChunkRecordBits); }
  static constexpr uint64_t ChunkOf(uint64_t record) { return record >> kChunkRecordBits; }
  constexpr uint64_t ChunkNumber(uint64_t extent, uint64_t chunk) const {
    return extent << chunk_bits | chunk;
  }
  /// The position of a chunk's word.
  constexpr uint64_t ChunkPosition(uint64_t number) const {
    return (number >> chunk_bits << extent_shift) + LowBits(number, chunk_bits) * 8;
  }

  static constexpr uint64_t LowBits(uint64_t number, int bits) {
    return number & ((uint64_t{1} << bits) - 1);
  }
};

}  // namespace nam::txn
