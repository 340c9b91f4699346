#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace nam::storage {

/// A compute server's knowledge of the immutable blocks of one version of a table: their addresses, their
/// zones of the sort column, and the mini-pages that were found whole. It saves a stream the READ of an
/// unwanted block, and repeated checksums of memory seen in place. Any thread; every entry is learned once
/// and then stays.
class KnownBlocks {
 public:
  /// `blocks_of_chain`: one count per chain.
  explicit KnownBlocks(std::span<const uint32_t> blocks_of_chain);

  struct Zone {
    uint64_t min = 0;
    uint64_t max = 0;
  };
  /// The zone of the sort column; nothing if unknown.
  std::optional<Zone> SortZone(uint32_t chain, uint32_t index) const;
  void LearnSortZone(uint32_t chain, uint32_t index, Zone zone);

  /// 0 if unknown.
  uint64_t Pointer(uint32_t chain, uint32_t index) const {
    return At(chain, index).pointer.load(std::memory_order_relaxed);
  }
  void LearnPointer(uint32_t chain, uint32_t index, uint64_t pointer) {
    At(chain, index).pointer.store(pointer, std::memory_order_relaxed);
  }

  /// Bits of verified parts: kPrefix, and Column(c) for those columns that have a bit.
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
    std::atomic<uint64_t> flags = 0;  // kZone is set after the zone's fields
    std::atomic<uint64_t> pointer = 0;
    std::atomic<uint64_t> sort_min = 0;
    std::atomic<uint64_t> sort_max = 0;
  };
  const Entry& At(uint32_t chain, uint32_t index) const { return entries_[first_[chain] + index]; }
  Entry& At(uint32_t chain, uint32_t index) { return entries_[first_[chain] + index]; }

  std::vector<uint64_t> first_;  // the entry of each chain's block 0
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace nam::storage
