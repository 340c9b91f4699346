#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

/// A block of a columnar table: columnar inside (PAX), one mini-page per column.
///
///     0         32                 + 24·columns       + 8·pointer_slots      page_offset[c]
///     ├ header ──┼ zone of column 0, 1, … ┼ pointer group ┼ mini-page 0 ┼ mini-page 1 ┼ … ┤
///     └────────────────── prefix ─────────────────────────┘ each 8-byte aligned
///
/// All blocks of a chain have one layout, sized for the same number of rows, so a stream knows where each
/// mini-page lies before it has read anything (I-Store, section 3). Values are codes: unsigned little-endian
/// integers of the column's width, which the catalog decodes. Columns whose values are too many or too wide
/// for codes are plain: numbers of 128 bits, or texts, whose page size is set per chain. A block closes when
/// any of its pages is full.
///
///     ├ end[0 … block_rows - 1], 4 bytes each ┼ the texts, one after the other ┤      page of plain text
///
/// Pointer groups: block i with i % G = 0 holds the pointers of blocks i + G … i + 2G - 1; the catalog holds
/// those of blocks 0 … G - 1. A chain of at most G blocks has no pointer slots.
struct BlockHeader {
  static constexpr uint32_t kMagic = 0x424d414e;  // "NAMB"
  uint32_t magic;
  uint16_t columns;
  uint16_t pointer_slots;
  uint32_t rows;
  uint32_t index;       // in its chain
  uint64_t allocation;  // of the table: tells a block from its predecessor in this memory
  uint32_t partition;
  uint32_t checksum;  // of the prefix with this field zero: the low half of XXH3
};
static_assert(sizeof(BlockHeader) == 32 && offsetof(BlockHeader, checksum) == 28);

/// The range of a mini-page's keys, ordered like its values: codes; the first 8 bytes of plain texts; the
/// upper 8 bytes of plain numbers with the sign bit flipped. min > max: NULLs alone.
struct ColumnZone {
  uint64_t min;
  uint64_t max;
  uint32_t checksum;  // over the mini-page's rows
  uint32_t page_offset;
};
static_assert(sizeof(ColumnZone) == 24);

/// Width of a plain number: 16 bytes, and a byte that is 1 for NULL. A flag is needed because every 128-bit
/// number is a valid uuid.
inline constexpr uint8_t kPlainNumberBytes = 17;

/// The numbers of one mini-page. Borrows the page.
class NumberPage {
 public:
  explicit NumberPage(const std::byte* page) : page_(page) {}
  static void Write(__int128 number, bool null, uint32_t row, std::byte* page) {
    std::byte* const to = page + size_t{row} * kPlainNumberBytes;
    if (null) number = 0;
    std::memcpy(to, &number, sizeof(number));
    to[sizeof(number)] = std::byte{null};
  }
  bool IsNull(uint32_t row) const {
    return page_[size_t{row} * kPlainNumberBytes + sizeof(__int128)] != std::byte{0};
  }
  __int128 operator[](uint32_t row) const {
    __int128 number = 0;
    std::memcpy(&number, page_ + size_t{row} * kPlainNumberBytes, sizeof(number));
    return number;
  }

 private:
  const std::byte* page_;
};

/// The texts of one mini-page. Borrows the page. Memory read in place may be reused at any time: texts are
/// then wrong, but within the page.
class TextPage {
 public:
  /// Flag of an end: the value is NULL.
  static constexpr uint32_t kNull = uint32_t{1} << 31;

  TextPage(const std::byte* page, uint32_t block_rows, uint32_t text_bytes)
      : ends_(reinterpret_cast<const uint32_t*>(page)),
        texts_(reinterpret_cast<const char*>(page) + size_t{block_rows} * 4),
        text_bytes_(text_bytes) {}
  bool IsNull(uint32_t row) const { return (ends_[row] & kNull) != 0; }
  /// The end of the text; it begins at the previous row's end.
  uint32_t end(uint32_t row) const { return ends_[row] & ~kNull; }
  std::string_view operator[](uint32_t row) const {
    const uint32_t begin = row == 0 ? 0 : std::min(end(row - 1), text_bytes_);
    return {texts_ + begin, std::clamp(end(row), begin, text_bytes_) - begin};
  }

 private:
  const uint32_t* ends_;
  const char* texts_;
  uint32_t text_bytes_;
};

struct Block;  // the bytes behind RemotePtr<Block>

inline constexpr uint32_t kMinBlockBytes = 1024;
inline constexpr uint32_t kMaxBlockBytes = 1u << 20;
/// The most bytes of a block for rows whose plain texts fit no other. It goes to memory servers and comes
/// from them alone, in pieces.
inline constexpr uint32_t kMaxLongBlockBytes = 64u << 20;

/// The offsets within the blocks of one chain. A value.
class BlockLayout {
 public:
  /// No columns.
  BlockLayout() = default;
  /// As Reset.
  BlockLayout(std::span<const uint8_t> widths, uint32_t block_rows, uint32_t pointer_slots,
              std::span<const uint32_t> text_bytes = {}) {
    Reset(widths, block_rows, pointer_slots, text_bytes);
  }
  /// Replaces the layout in the memory of the former one. `text_bytes`: per column, the room for texts in its
  /// page; 0 for other columns, empty if no column is plain text. A plain text column's width is that of an
  /// end.
  void Reset(std::span<const uint8_t> widths, uint32_t block_rows, uint32_t pointer_slots,
             std::span<const uint32_t> text_bytes = {});
  /// The most rows that fit into `block_bytes`, without plain texts; 0 if none fits.
  static uint32_t RowsThatFit(std::span<const uint8_t> widths, uint32_t block_bytes, uint32_t pointer_slots);

  uint32_t columns() const { return static_cast<uint32_t>(widths_.size()); }
  uint32_t block_rows() const { return block_rows_; }
  uint32_t pointer_slots() const { return pointer_slots_; }
  uint32_t prefix_bytes() const { return prefix_bytes_; }
  uint32_t bytes() const { return bytes_; }
  uint8_t width(uint32_t column) const { return widths_[column]; }
  uint32_t page_offset(uint32_t column) const { return page_offsets_[column]; }
  bool is_text(uint32_t column) const { return text_bytes(column) > 0; }
  uint32_t text_bytes(uint32_t column) const { return text_bytes_.empty() ? 0 : text_bytes_[column]; }
  uint32_t page_bytes(uint32_t column) const { return block_rows_ * widths_[column] + text_bytes(column); }
  uint32_t pointers_offset() const {
    return static_cast<uint32_t>(sizeof(BlockHeader) + columns() * sizeof(ColumnZone));
  }

 private:
  std::vector<uint8_t> widths_;
  std::vector<uint32_t> text_bytes_;
  std::vector<uint32_t> page_offsets_;
  uint32_t block_rows_ = 0;
  uint32_t pointer_slots_ = 0;
  uint32_t prefix_bytes_ = 0;
  uint32_t bytes_ = 0;
};

/// The number of pointers that each block of a chain reserves.
constexpr uint32_t PointerSlots(uint32_t blocks, uint32_t pointer_group) {
  return blocks > pointer_group ? pointer_group : 0;
}

/// Fills a block in local memory: pages first, then Seal.
class BlockWriter {
 public:
  /// `block` has layout.bytes() bytes and must outlive the writer.
  BlockWriter(const BlockLayout& layout, std::byte* block) : layout_(layout), block_(block) {}
  const BlockLayout& layout() const { return layout_; }
  std::byte* page(uint32_t column) { return block_ + layout_.page_offset(column); }
  /// Computes zones and checksums of `rows` rows. `group` is empty unless the block leads a pointer group.
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

  /// DATA_LOSS unless the prefix is that of block `index` of the allocation's chain. Always makes the cheap
  /// checks; compares the checksum with `verify`.
  absl::Status CheckPrefix(uint64_t allocation, uint32_t partition, uint32_t index, bool verify) const;
  absl::Status CheckPage(uint32_t column) const;

  uint32_t rows() const { return header().rows; }
  uint32_t partition() const { return header().partition; }
  uint32_t index() const { return header().index; }
  uint8_t width(uint32_t column) const { return layout_->width(column); }
  const std::byte* page(uint32_t column) const { return block_ + layout_->page_offset(column); }
  TextPage texts(uint32_t column) const {
    return {page(column), layout_->block_rows(), layout_->text_bytes(column)};
  }
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
