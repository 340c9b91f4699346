#include "storage/known_blocks.h"

namespace nam::storage {

KnownBlocks::KnownBlocks(std::span<const uint32_t> blocks_of_chain) {
  uint64_t blocks = 0;
  for (const uint32_t count : blocks_of_chain) {
    first_.push_back(blocks);
    blocks += count;
  }
  entries_ = std::make_unique<Entry[]>(blocks);
}

std::optional<KnownBlocks::Zone> KnownBlocks::SortZone(uint32_t chain, uint32_t index) const {
  const Entry& entry = At(chain, index);
  if ((entry.flags.load(std::memory_order_acquire) & kZone) == 0) return std::nullopt;
  return Zone{entry.sort_min.load(std::memory_order_relaxed), entry.sort_max.load(std::memory_order_relaxed)};
}

void KnownBlocks::LearnSortZone(uint32_t chain, uint32_t index, Zone zone) {
  Entry& entry = At(chain, index);
  entry.sort_min.store(zone.min, std::memory_order_relaxed);
  entry.sort_max.store(zone.max, std::memory_order_relaxed);
  entry.flags.fetch_or(kZone, std::memory_order_release);
}

}  // namespace nam::storage
