#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace nam::storage {

/// What a compute server has learned of the blocks of one version of a table, which never change: where
/// they lie, what the sort column holds, and which mini-pages were found whole. With it a stream need not
/// READ a block to find that no row of it is wanted, and need not checksum again what lies in memory that
/// it sees in place. Any thread; every entry is learned once and then stays.
class KnownBlocks {
 public:
  /// One count per chain.
  explicit KnownBlocks(std::span<const uint32_t> blocks_of_chain);

  struct Zone {
    uint64_t min = 0;
    uint64_t max = 0;
  };
  /// Of the sort column; nothing if it has not been learned.
  std::optional<Zone> SortZone(uint32_t chain, uint32_t index) const;
  void LearnSortZone(uint32_t chain, uint32_t index, Zone zone);

  /// 0 if it has not been learned.
  uint64_t Pointer(uint32_t chain, uint32_t index) const {
    return At(chain, index).pointer.load(std::memory_order_relaxed);
  }
  void LearnPointer(uint32_t chain, uint32_t index, uint64_t pointer) {
    At(chain, index).pointer.store(pointer, std::memory_order_relaxed);
  }

  /// Bits of what was found whole: kPrefix, and Column(c) for those columns that have a bit.
  static constexpr uint64_t kPrefix = uint64_t{1} << 62;
  static constexpr uint64_t Column(uint32_t column) { return column < 62 ? uint64_t{1} << column : 0; }
  uint64_t Verified(uint32_t chain, uint32_t index) const {
    return At(chain, index).flags.load(std::memory_order_relaxed);
  }
  void SetVerified(uint32_t chain, uint32_t index, uint64_t bits) {
    At(chain, index).flags.fetch_or(bits, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kZone = uint64_t{1} << 63;
  struct Entry {
    std::atomic<uint64_t> flags = 0;  // kZone is set after the zone itself
    std::atomic<uint64_t> pointer = 0;
    std::atomic<uint64_t> sort_min = 0;
    std::atomic<uint64_t> sort_max = 0;
  };
  const Entry& At(uint32_t chain, uint32_t index) const { return entries_[first_[chain] + index]; }
  Entry& At(uint32_t chain, uint32_t index) { return entries_[first_[chain] + index]; }

  std::vector<uint64_t> first_;  // entry of each chain's block 0
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace nam::storage
