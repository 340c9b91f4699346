#include "execution/partition/packed_page.h"

#include <cstring>

namespace nam::execution {
namespace {

/// A page with texts stays whole if packing saves less than this share: moving the texts takes longer than
/// sending those bytes.
constexpr uint32_t kLeastSavedShare = 8;

uint64_t RowsEnd(const RowLayout& layout, const PageHeader& header) {
  return kPageHeaderBytes + uint64_t{header.rows} * layout.stride();
}

/// For any number of rows; texts begin within the page, or at its end.
uint64_t PackedBytes(const RowLayout& layout, const PageHeader& header) {
  const uint64_t bytes = RowsEnd(layout, header) + (layout.page_bytes() - header.text_begin);
  return (bytes + kPageLineBytes - 1) / kPageLineBytes * kPageLineBytes;
}

}  // namespace

uint32_t PackPage(const RowLayout& layout, std::byte* page) {
  const PageHeader header = PageHeaderOf(page);
  const uint32_t page_bytes = layout.page_bytes(), text_bytes = page_bytes - header.text_begin;
  const uint64_t bytes = PackedBytes(layout, header);
  const uint32_t least_saved = text_bytes > 0 ? page_bytes / kLeastSavedShare : kPageLineBytes;
  if (bytes + least_saved > page_bytes) return page_bytes;
  std::memmove(page + RowsEnd(layout, header), page + header.text_begin, text_bytes);
  return static_cast<uint32_t>(bytes);
}

absl::Status UnpackPage(const RowLayout& layout, std::span<std::byte> page, size_t bytes) {
  if (bytes == layout.page_bytes()) return absl::OkStatus();
  const PageHeader header = PageHeaderOf(page.data());
  // Rows and texts that together are shorter than the page do not overlap in it, either.
  if (bytes > layout.page_bytes() || header.text_begin > layout.page_bytes() ||
      bytes != PackedBytes(layout, header)) {
    return absl::DataLossError("a page in scratch memory does not have the size that its header says");
  }
  std::memmove(page.data() + header.text_begin, page.data() + RowsEnd(layout, header),
               layout.page_bytes() - header.text_begin);
  return absl::OkStatus();
}

}  // namespace nam::execution
