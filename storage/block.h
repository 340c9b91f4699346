#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

/// A block of an analytical table: columnar inside (PAX), one mini-page per column.
///
///     0         32                 + 24·columns       + 8·pointer_slots      page_offset[c]
///     ├ header ──┼ zone of column 0, 1, … ┼ pointer group ┼ mini-page 0 ┼ mini-page 1 ┼ … ┤
///     └────────────────── prefix ─────────────────────────┘ each 8-byte aligned
///
/// All blocks of a chain have one layout, sized for the same number of rows, so a stream knows where
/// each mini-page lies before it has read anything (I-Store, section 3). Values are codes: unsigned
/// little-endian integers of the column's width; the catalog says what they stand for.
///
/// Pointer groups: block i with i % G = 0 holds the pointers of blocks i + G … i + 2G - 1; those of
/// blocks 0 … G - 1 are in the catalog. A chain of at most G blocks has no pointer slots at all.
struct BlockHeader {
  static constexpr uint32_t kMagic = 0x424d414e;  // "NAMB"
  uint32_t magic;
  uint16_t columns;
  uint16_t pointer_slots;
  uint32_t rows;
  uint32_t index;       // in its chain
  uint64_t allocation;  // of the table: tells a block from one that used to be here
  uint32_t partition;
  uint32_t checksum;  // of the prefix with this field zero: the low half of XXH3
};
static_assert(sizeof(BlockHeader) == 32 && offsetof(BlockHeader, checksum) == 28);

/// What a mini-page holds, in codes.
struct ColumnZone {
  uint64_t min;
  uint64_t max;
  uint32_t checksum;  // of the mini-page's rows
  uint32_t page_offset;
};
static_assert(sizeof(ColumnZone) == 24);

struct Block;  // the bytes behind RemotePtr<Block>

inline constexpr uint32_t kMinBlockBytes = 1024;
inline constexpr uint32_t kMaxBlockBytes = 1u << 20;
inline constexpr uint32_t kMaxColumns = 1024;

/// Where everything lies in the blocks of one chain. A value.
class BlockLayout {
 public:
  BlockLayout(std::span<const uint8_t> widths, uint32_t block_rows, uint32_t pointer_slots);
  /// The most rows that fit `block_bytes`; 0 if not even one does.
  static uint32_t RowsThatFit(std::span<const uint8_t> widths, uint32_t block_bytes, uint32_t pointer_slots);

  uint32_t columns() const { return static_cast<uint32_t>(widths_.size()); }
  uint32_t block_rows() const { return block_rows_; }
  uint32_t pointer_slots() const { return pointer_slots_; }
  uint32_t prefix_bytes() const { return prefix_bytes_; }
  uint32_t bytes() const { return bytes_; }
  uint8_t width(uint32_t column) const { return widths_[column]; }
  uint32_t page_offset(uint32_t column) const { return page_offsets_[column]; }
  uint32_t page_bytes(uint32_t column) const { return block_rows_ * widths_[column]; }
  uint32_t pointers_offset() const {
    return static_cast<uint32_t>(sizeof(BlockHeader) + columns() * sizeof(ColumnZone));
  }

 private:
  std::vector<uint8_t> widths_;
  std::vector<uint32_t> page_offsets_;
  uint32_t block_rows_;
  uint32_t pointer_slots_;
  uint32_t prefix_bytes_;
  uint32_t bytes_;
};

/// How many pointers each block of a chain reserves.
constexpr uint32_t PointerSlots(uint32_t blocks, uint32_t pointer_group) {
  return blocks > pointer_group ? pointer_group : 0;
}

/// Fills a block in local memory: pages first, then Seal.
class BlockWriter {
 public:
  /// `block` has layout.bytes() bytes and outlives the writer.
  BlockWriter(const BlockLayout& layout, std::byte* block) : layout_(layout), block_(block) {}
  std::byte* page(uint32_t column) { return block_ + layout_.page_offset(column); }
  /// Computes zones and checksums of `rows` rows. `group` is empty unless the block leads a group.
  void Seal(uint64_t allocation, uint32_t partition, uint32_t index, uint32_t rows,
            std::span<const uint64_t> group);

 private:
  const BlockLayout& layout_;
  std::byte* block_;
};

/// A block's bytes in local memory (or in place), read only. Does not own them.
class BlockView {
 public:
  BlockView() = default;
  BlockView(const BlockLayout& layout, const std::byte* block) : layout_(&layout), block_(block) {}

  /// DATA_LOSS if the prefix is not that of block `index` of the allocation's chain. Cheap checks always,
  /// the checksum with `verify`.
  absl::Status CheckPrefix(uint64_t allocation, uint32_t partition, uint32_t index, bool verify) const;
  absl::Status CheckPage(uint32_t column) const;

  uint32_t rows() const { return header().rows; }
  uint32_t partition() const { return header().partition; }
  uint32_t index() const { return header().index; }
  uint8_t width(uint32_t column) const { return layout_->width(column); }
  const std::byte* page(uint32_t column) const { return block_ + layout_->page_offset(column); }
  const ColumnZone& zone(uint32_t column) const {
    return reinterpret_cast<const ColumnZone*>(block_ + sizeof(BlockHeader))[column];
  }
  std::span<const uint64_t> pointers() const {
    return {reinterpret_cast<const uint64_t*>(block_ + layout_->pointers_offset()), header().pointer_slots};
  }

 private:
  const BlockHeader& header() const { return *reinterpret_cast<const BlockHeader*>(block_); }
  const BlockLayout* layout_ = nullptr;
  const std::byte* block_ = nullptr;
};

}  // namespace nam::storage
