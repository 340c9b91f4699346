#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace nam::memserver {

inline constexpr uint64_t kExtentAlignment = 4'096;

/// A range of a memory server's address space, within one region.
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

/// Tracks the free parts of the address space. Pure arithmetic; touches no memory.
///
///     0    4 KiB        region_bytes          2·region_bytes              memory_bytes
///     ├──x──┼───────────────┼──────────────────────┼──── … ────┼──────────────┤
///     never │   region 0    │       region 1       │           │ the last may be shorter
///
/// Best fit, lowest offset first, so regions fill up before the next one is begun. A request that fits no
/// single gap takes the largest gaps. Adjacent free ranges within a region are merged. Not thread-safe.
class ExtentAllocator {
 public:
  /// Both multiples of kExtentAlignment, neither 0.
  ExtentAllocator(uint64_t region_bytes, uint64_t memory_bytes);

  /// Extents of `bytes` in total, rounded up to the alignment, ordered by offset; nothing if there is no
  /// room.
  std::optional<std::vector<Extent>> Allocate(uint64_t bytes);
  /// One extent, or nothing.
  std::optional<Extent> AllocateContiguous(uint64_t bytes);
  /// Allocates exactly this extent. False: part of it is not free, or it spans regions.
  bool AllocateAt(const Extent& extent);
  /// Checks that the extent, or a larger one around it, was handed out and is not free.
  void Free(const Extent& extent);

  /// The most bytes that can be handed out.
  uint64_t capacity_bytes() const { return memory_bytes_ - kExtentAlignment; }
  uint64_t free_bytes() const { return free_bytes_; }
  /// The most bytes that AllocateContiguous can take.
  uint64_t largest_gap_bytes() const { return by_bytes_.empty() ? 0 : by_bytes_.rbegin()->first; }
  uint64_t used_bytes() const { return capacity_bytes() - free_bytes_; }
  /// The number of gaps, a measure of fragmentation.
  size_t gaps() const { return by_offset_.size(); }

 private:
  Extent AllocateFrom(uint64_t gap_offset, uint64_t gap_bytes, uint64_t bytes);
  void AddGap(uint64_t offset, uint64_t bytes);
  void RemoveGap(std::map<uint64_t, uint64_t>::iterator gap);

  const uint64_t region_bytes_;
  const uint64_t memory_bytes_;
  uint64_t free_bytes_ = 0;
  std::map<uint64_t, uint64_t> by_offset_;            // gaps: offset to bytes
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_;  // the same: bytes, offset
};

}  // namespace nam::memserver
