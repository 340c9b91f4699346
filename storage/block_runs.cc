#include "storage/block_runs.h"

namespace nam::storage {
namespace {

/// Gaps up to this size are read over instead of starting another READ.
constexpr uint32_t kMergeGapBytes = 1024;

}  // namespace

void FindRuns(const BlockLayout& layout, std::span<const uint32_t> columns, std::vector<ByteRange>& runs) {
  runs.assign({{0, layout.prefix_bytes()}});
  for (uint32_t column : columns) {
    const uint32_t offset = layout.page_offset(column);
    // Rounds up to whole words, where the next page begins, so that copies stay aligned.
    const uint32_t end = (offset + layout.page_bytes(column) + 7) / 8 * 8;
    ByteRange& last = runs.back();
    if (offset <= last.offset + last.bytes + kMergeGapBytes) {
      last.bytes = end - last.offset;
    } else {
      runs.push_back({offset, end - offset});
    }
  }
}

uint32_t TotalBytes(std::span<const ByteRange> runs) {
  uint32_t bytes = 0;
  for (const ByteRange& run : runs) bytes += run.bytes;
  return bytes;
}

}  // namespace nam::storage
