#include "memserver/extent_allocator.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace nam::memserver {

namespace {

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kExtentAlignment - 1) / kExtentAlignment * kExtentAlignment;
}

}  // namespace

ExtentAllocator::ExtentAllocator(uint64_t region_bytes, uint64_t memory_bytes)
    : region_bytes_(region_bytes), memory_bytes_(memory_bytes) {
  NAM_CHECK(region_bytes > 0 && region_bytes % kExtentAlignment == 0);
  NAM_CHECK(memory_bytes > 0 && memory_bytes % kExtentAlignment == 0);
  for (uint64_t offset = 0; offset < memory_bytes; offset += region_bytes) {
    const uint64_t begin = std::max(offset, kExtentAlignment);  // a remote pointer of 0 stays null
    const uint64_t end = std::min(offset + region_bytes, memory_bytes);
    if (begin < end) AddGap(begin, end - begin);
  }
}

void ExtentAllocator::AddGap(uint64_t offset, uint64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_bytes_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void ExtentAllocator::RemoveGap(std::map<uint64_t, uint64_t>::iterator gap) {
  free_bytes_ -= gap->second;
  by_bytes_.erase({gap->second, gap->first});
  by_offset_.erase(gap);
}

Extent ExtentAllocator::AllocateFrom(uint64_t gap_offset, uint64_t gap_bytes, uint64_t bytes) {
  const uint64_t taken = std::min(gap_bytes, bytes);
  RemoveGap(by_offset_.find(gap_offset));
  if (taken < gap_bytes) AddGap(gap_offset + taken, gap_bytes - taken);
  return {gap_offset, taken};
}

std::optional<Extent> ExtentAllocator::AllocateContiguous(uint64_t bytes) {
  if (bytes == 0 || bytes > free_bytes_) return std::nullopt;
  const uint64_t needed = RoundUp(bytes);
  const auto best = by_bytes_.lower_bound({needed, 0});
  if (best == by_bytes_.end()) return std::nullopt;
  const auto [gap_bytes, offset] = *best;
  return AllocateFrom(offset, gap_bytes, needed);
}

std::optional<std::vector<Extent>> ExtentAllocator::Allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > free_bytes_) return std::nullopt;
  uint64_t needed = RoundUp(bytes);
  if (needed > free_bytes_) return std::nullopt;
  std::vector<Extent> extents;
  while (needed > 0) {
    auto best = by_bytes_.lower_bound({needed, 0});
    if (best == by_bytes_.end()) best = by_bytes_.lower_bound({by_bytes_.rbegin()->first, 0});
    const auto [gap_bytes, offset] = *best;
    extents.push_back(AllocateFrom(offset, gap_bytes, needed));
    needed -= extents.back().bytes;
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  return extents;
}

bool ExtentAllocator::AllocateAt(const Extent& extent) {
  if (extent.bytes == 0 || extent.bytes % kExtentAlignment != 0 || extent.offset % kExtentAlignment != 0)
    return false;
  auto gap = by_offset_.upper_bound(extent.offset);
  if (gap == by_offset_.begin()) return false;
  --gap;
  const auto [offset, bytes] = *gap;
  const uint64_t before = extent.offset - offset;
  if (before >= bytes || extent.bytes > bytes - before) return false;
  RemoveGap(gap);
  if (before > 0) AddGap(offset, before);
  if (before + extent.bytes < bytes) AddGap(extent.offset + extent.bytes, bytes - before - extent.bytes);
  return true;
}

void ExtentAllocator::Free(const Extent& extent) {
  NAM_CHECK(extent.bytes > 0 && extent.bytes % kExtentAlignment == 0 &&
            extent.offset % kExtentAlignment == 0);
  NAM_CHECK(extent.offset >= kExtentAlignment && extent.offset + extent.bytes <= memory_bytes_);
  const uint64_t region = extent.offset / region_bytes_;
  NAM_CHECK((extent.offset + extent.bytes - 1) / region_bytes_ == region, "an extent lies in one region");
  uint64_t offset = extent.offset;
  uint64_t bytes = extent.bytes;
  const auto after = by_offset_.lower_bound(offset);
  const auto before = after == by_offset_.begin() ? by_offset_.end() : std::prev(after);
  NAM_CHECK(after == by_offset_.end() || offset + bytes <= after->first, "freed twice");
  NAM_CHECK(before == by_offset_.end() || before->first + before->second <= offset, "freed twice");
  if (after != by_offset_.end() && after->first == offset + bytes && after->first / region_bytes_ == region) {
    bytes += after->second;
    RemoveGap(after);
  }
  if (before != by_offset_.end() && before->first + before->second == offset &&
      before->first / region_bytes_ == region) {
    offset = before->first;
    bytes += before->second;
    RemoveGap(before);
  }
  AddGap(offset, bytes);
}

}  // namespace nam::memserver
