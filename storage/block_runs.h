#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/block.h"

namespace nam::storage {

struct ByteRange {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  bool operator==(const ByteRange&) const = default;
};

/// Replaces `runs` by the byte ranges to move per block for `columns` (ascending): the prefix and their
/// mini-pages. Adjacent ranges are merged, including small gaps.
void FindRuns(const BlockLayout& layout, std::span<const uint32_t> columns, std::vector<ByteRange>& runs);
uint32_t TotalBytes(std::span<const ByteRange> runs);

}  // namespace nam::storage
