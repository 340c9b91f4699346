#include "storage/block.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "storage/checksum.h"

namespace nam::storage {
namespace {

constexpr uint32_t AlignUp8(uint32_t n) {
  return (n + 7) & ~7u;
}

uint32_t Low32(uint64_t n) {
  return static_cast<uint32_t>(n);
}

/// The prefix's checksum with the header's own field taken as zero.
uint32_t PrefixChecksum(const std::byte* block, uint32_t prefix_bytes) {
  BlockHeader header;
  std::memcpy(&header, block, sizeof(header));
  header.checksum = 0;
  const uint64_t head = Checksum(std::as_bytes(std::span(&header, 1)));
  const uint64_t rest = Checksum({block + sizeof(header), prefix_bytes - sizeof(header)});
  return Low32(head ^ (rest * 0x9E3779B97F4A7C15ull));
}

template <typename T>
void MinMax(const std::byte* page, uint32_t rows, ColumnZone& zone) {
  const T* values = reinterpret_cast<const T*>(page);
  T low = values[0], high = values[0];
  for (uint32_t i = 1; i < rows; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  zone.min = low;
  zone.max = high;
}

}  // namespace

BlockLayout::BlockLayout(std::span<const uint8_t> widths, uint32_t block_rows, uint32_t pointer_slots)
    : widths_(widths.begin(), widths.end()), block_rows_(block_rows), pointer_slots_(pointer_slots) {
  prefix_bytes_ = pointers_offset() + pointer_slots * 8;
  uint32_t at = prefix_bytes_;
  for (uint8_t width : widths_) {
    page_offsets_.push_back(at);
    at = AlignUp8(at + block_rows * width);
  }
  bytes_ = at;
}

uint32_t BlockLayout::RowsThatFit(std::span<const uint8_t> widths, uint32_t block_bytes,
                                  uint32_t pointer_slots) {
  const auto prefix =
      static_cast<uint32_t>(sizeof(BlockHeader) + widths.size() * sizeof(ColumnZone) + pointer_slots * 8);
  uint32_t row_bytes = 0;
  for (uint8_t width : widths) row_bytes += width;
  if (prefix >= block_bytes || row_bytes == 0) return 0;
  uint32_t rows = (block_bytes - prefix) / row_bytes;
  while (rows > 0 && BlockLayout(widths, rows, pointer_slots).bytes() > block_bytes) --rows;
  return rows;
}

void BlockWriter::Seal(uint64_t allocation, uint32_t partition, uint32_t index, uint32_t rows,
                       std::span<const uint64_t> group) {
  NAM_CHECK(rows > 0 && rows <= layout_.block_rows() && group.size() <= layout_.pointer_slots());
  BlockHeader header{BlockHeader::kMagic,
                     static_cast<uint16_t>(layout_.columns()),
                     static_cast<uint16_t>(layout_.pointer_slots()),
                     rows,
                     index,
                     allocation,
                     partition,
                     0};
  auto* zones = reinterpret_cast<ColumnZone*>(block_ + sizeof(BlockHeader));
  for (uint32_t c = 0; c < layout_.columns(); ++c) {
    ColumnZone& zone = zones[c];
    const std::byte* data = page(c);
    switch (layout_.width(c)) {
      case 1:
        MinMax<uint8_t>(data, rows, zone);
        break;
      case 2:
        MinMax<uint16_t>(data, rows, zone);
        break;
      case 4:
        MinMax<uint32_t>(data, rows, zone);
        break;
      default:
        MinMax<uint64_t>(data, rows, zone);
        break;
    }
    zone.checksum = Low32(Checksum({data, size_t{rows} * layout_.width(c)}));
    zone.page_offset = layout_.page_offset(c);
  }
  std::byte* pointers = block_ + layout_.pointers_offset();
  std::memset(pointers, 0, layout_.pointer_slots() * 8);
  if (!group.empty()) std::memcpy(pointers, group.data(), group.size_bytes());
  std::memcpy(block_, &header, sizeof(header));
  header.checksum = PrefixChecksum(block_, layout_.prefix_bytes());
  std::memcpy(block_, &header, sizeof(header));
}

absl::Status BlockView::CheckPrefix(uint64_t allocation, uint32_t partition, uint32_t index,
                                    bool verify) const {
  const BlockHeader& h = header();
  const bool plausible = h.magic == BlockHeader::kMagic && h.allocation == allocation &&
                         h.partition == partition && h.index == index && h.columns == layout_->columns() &&
                         h.pointer_slots == layout_->pointer_slots() && h.rows > 0 &&
                         h.rows <= layout_->block_rows();
  if (plausible && (!verify || PrefixChecksum(block_, layout_->prefix_bytes()) == h.checksum))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "block %d of partition %d (allocation %d) is damaged or gone: %s", index, partition, allocation,
      plausible ? "its checksum does not match" : "its header is not that of this block"));
}

absl::Status BlockView::CheckPage(uint32_t column) const {
  const std::span<const std::byte> data(page(column), size_t{rows()} * width(column));
  if (Low32(Checksum(data)) == zone(column).checksum) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "block %d of partition %d: the checksum of column %d does not match", index(), partition(), column));
}

}  // namespace nam::storage
