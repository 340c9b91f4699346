#pragma once

#include <bit>
#include <cstdint>

#include "base/check.h"
#include "storage/record_block.h"

/// The extents of a record table's rows: which of their chunks is whose, then the blocks.
///
///     extent    word of chunk 0, 1, …  padded to 64 │ block 0 │ block 1 │ …
///     chunk     kChunkRecords blocks in a row
///     number    of a record:  extent │ chunk │ block 8      of a chunk:  extent │ chunk
///
/// `chunk` has the bits that an extent's chunks need, and extents are a power of two: a number becomes an
/// address by shifts and one multiplication. Numbers between an extent's last chunk and the next extent are
/// of no record. All zeroes: chunks that nobody had, blocks that are free.
namespace nam::txn {

inline constexpr int kChunkRecordBits = 8;
inline constexpr uint64_t kChunkRecords = uint64_t{1} << kChunkRecordBits;
/// A chunk of which fewer blocks were freed is not worth looking through.
inline constexpr uint32_t kFreedMin = kChunkRecords / 8;

/// A chunk's word. Changed by CAS and FETCH_ADD.
///
///     had 1 │ owner 15 │ freed 48
///
/// Nobody's chunk has owner 0. `freed` counts the blocks that were given back, or whose rows were deleted,
/// since an owner last looked. It is too large if rows are deleted and inserted again, as often as that may
/// be: at a million a second it would reach the owner in nine years.
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
  /// Added to a chunk of `client`'s it gives it back: `freed` blocks more are free.
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
  uint64_t chunks = 0;              // of an extent
  uint64_t records_per_extent = 0;  // chunks · kChunkRecords
  int extent_shift = 0;
  int chunk_bits = 0;        // of a number
  uint64_t first_block = 0;  // behind the chunks' words
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
  constexpr uint64_t ExtentOf(uint64_t record) const { return record >> (chunk_bits + kChunkRecordBits); }
  static constexpr uint64_t ChunkOf(uint64_t record) { return record >> kChunkRecordBits; }
  constexpr uint64_t ChunkNumber(uint64_t extent, uint64_t chunk) const {
    return extent << chunk_bits | chunk;
  }
  /// Of a chunk's word.
  constexpr uint64_t ChunkPosition(uint64_t number) const {
    return (number >> chunk_bits << extent_shift) + LowBits(number, chunk_bits) * 8;
  }

  static constexpr uint64_t LowBits(uint64_t number, int bits) {
    return number & ((uint64_t{1} << bits) - 1);
  }
};

}  // namespace nam::txn
