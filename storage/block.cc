#include "storage/block.h"

#include <algorithm>
#include <cstring>
#include <optional>

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

/// The prefix's checksum, with the header's checksum field taken as zero.
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

/// The first bytes of a text as a number that sorts like the text.
uint64_t PrefixOf(std::string_view text) {
  unsigned char bytes[8] = {};
  std::memcpy(bytes, text.data(), std::min<size_t>(text.size(), sizeof(bytes)));
  uint64_t prefix = 0;
  for (const unsigned char byte : bytes) prefix = prefix << 8 | byte;
  return prefix;
}

/// The zone of the values that are not NULL. `value_of` returns a row's number, or nothing.
template <typename ValueOf>
void ZoneOfPlain(uint32_t rows, ColumnZone& zone, ValueOf value_of) {
  zone.min = UINT64_MAX;
  zone.max = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    const std::optional<uint64_t> value = value_of(i);
    if (!value) continue;
    zone.min = std::min(zone.min, *value);
    zone.max = std::max(zone.max, *value);
  }
}

void ZoneOfTexts(const TextPage& texts, uint32_t rows, ColumnZone& zone) {
  ZoneOfPlain(rows, zone, [&](uint32_t i) -> std::optional<uint64_t> {
    if (texts.IsNull(i)) return std::nullopt;
    return PrefixOf(texts[i]);
  });
}

void ZoneOfNumbers(const NumberPage& numbers, uint32_t rows, ColumnZone& zone) {
  ZoneOfPlain(rows, zone, [&](uint32_t i) -> std::optional<uint64_t> {
    if (numbers.IsNull(i)) return std::nullopt;
    return static_cast<uint64_t>(numbers[i] >> 64) ^ uint64_t { 1 } << 63;
  });
}

/// The checksum of the page bytes that hold the values of `rows` rows.
uint32_t PageChecksum(const BlockLayout& layout, uint32_t column, const std::byte* page, uint32_t rows) {
  const uint64_t fixed = Checksum({page, size_t{rows} * layout.width(column)});
  if (!layout.is_text(column)) return Low32(fixed);
  const uint32_t text_bytes = TextPage(page, layout.block_rows(), layout.text_bytes(column)).end(rows - 1);
  return Low32(fixed ^
               Checksum({page + size_t{layout.block_rows()} * 4, text_bytes}) * 0x9E3779B97F4A7C15ull);
}

/// True if the ends ascend within the page.
bool EndsAreWhole(const BlockLayout& layout, uint32_t column, const std::byte* page, uint32_t rows) {
  const TextPage texts(page, layout.block_rows(), layout.text_bytes(column));
  uint32_t before = 0;
  bool ascend = true;
  for (uint32_t i = 0; i < rows; ++i) {
    ascend &= texts.end(i) >= before;
    before = texts.end(i);
  }
  return ascend && before <= layout.text_bytes(column);
}

}  // namespace

void BlockLayout::Reset(std::span<const uint8_t> widths, uint32_t block_rows, uint32_t pointer_slots,
                        std::span<const uint32_t> text_bytes) {
  NAM_CHECK(text_bytes.empty() || text_bytes.size() == widths.size());
  widths_.assign(widths.begin(), widths.end());
  text_bytes_.assign(text_bytes.begin(), text_bytes.end());
  block_rows_ = block_rows;
  pointer_slots_ = pointer_slots;
  prefix_bytes_ = pointers_offset() + pointer_slots * 8;
  page_offsets_.resize(widths.size());
  uint32_t at = prefix_bytes_;
  for (uint32_t c = 0; c < columns(); ++c) {
    page_offsets_[c] = at;
    at = AlignUp8(at + page_bytes(c));
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
    zone.page_offset = layout_.page_offset(c);
    zone.checksum = PageChecksum(layout_, c, data, rows);
    if (layout_.is_text(c)) {
      ZoneOfTexts({data, layout_.block_rows(), layout_.text_bytes(c)}, rows, zone);
      continue;
    }
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
      case kPlainNumberBytes:
        ZoneOfNumbers(NumberPage(data), rows, zone);
        break;
      default:
        MinMax<uint64_t>(data, rows, zone);
        break;
    }
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
  const std::byte* const data = page(column);
  const bool whole = !layout_->is_text(column) || EndsAreWhole(*layout_, column, data, rows());
  if (whole && PageChecksum(*layout_, column, data, rows()) == zone(column).checksum) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "block %d of partition %d: the checksum of column %d does not match", index(), partition(), column));
}

}  // namespace nam::storage
