#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/prefetch.h"
#include "execution/budget_array.h"

namespace nam::execution {

/// Finds groups by hash. Open addressing, 8 bytes a slot:
///
///     ├ u32 group + 1; 0: empty ┼ u32 lowest bits of the hash ┤
///
/// The same bits choose the slot (their lowest) and identify groups, so growing reads slots and nothing else.
/// The caller checks whether equal bits mean an equal group. One thread.
class GroupTable {
 public:
  explicit GroupTable(MemoryBudget& budget) : budget_(budget), slots_(budget) {}

  /// Makes room for `more` calls of Put.
  absl::Status Reserve(uint32_t more);

  void Clear() {
    slots_.Clear();
    mask_ = size_ = 0;
  }
  /// Forgets the groups and keeps the memory.
  void Reset();

  /// The first slot for a hash, and the next one.
  uint64_t First(uint32_t hash) const { return hash & mask_; }
  uint64_t Next(uint64_t at) const { return (at + 1) & mask_; }
  bool Empty(uint64_t at) const { return static_cast<uint32_t>(slots_[at]) == 0; }
  uint32_t Hash(uint64_t at) const { return static_cast<uint32_t>(slots_[at] >> 32); }
  uint32_t Group(uint64_t at) const { return static_cast<uint32_t>(slots_[at]) - 1; }
  void Put(uint64_t at, uint32_t hash, uint32_t group) {
    slots_[at] = uint64_t{hash} << 32 | (group + 1);
    ++size_;
  }

  /// Whether slots miss the near caches, so that prefetching them pays.
  bool far() const { return mask_ >= kFarSlots; }
  void Prefetch(uint32_t hash) const { nam::Prefetch<false>(&slots_[First(hash)], sizeof(uint64_t)); }

 private:
  static constexpr uint64_t kLeastSlots = 1024;
  static constexpr uint64_t kFarSlots = 1 << 15;

  MemoryBudget& budget_;
  BudgetArray<uint64_t> slots_;
  uint64_t mask_ = 0;
  uint64_t size_ = 0;
};

}  // namespace nam::execution
