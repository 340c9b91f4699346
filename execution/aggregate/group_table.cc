#include "execution/aggregate/group_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace nam::execution {

absl::Status GroupTable::Reserve(uint32_t more) {
  // At most 5 of 8 slots are taken: searches that end at an empty slot look at four on average.
  uint64_t slots = std::max(slots_.capacity(), kLeastSlots);
  while ((size_ + more) * 8 > slots * 5) slots *= 2;
  if (slots == slots_.capacity()) return absl::OkStatus();
  BudgetArray<uint64_t> grown(budget_);
  NAM_RETURN_IF_ERROR(grown.Resize(slots));
  mask_ = slots - 1;
  for (uint64_t i = 0; i < slots_.capacity(); ++i) {
    const uint64_t slot = slots_[i];
    if (static_cast<uint32_t>(slot) == 0) continue;
    uint64_t at = First(static_cast<uint32_t>(slot >> 32));
    while (static_cast<uint32_t>(grown[at]) != 0) at = Next(at);
    grown[at] = slot;
  }
  slots_ = std::move(grown);
  return absl::OkStatus();
}

void GroupTable::Reset() {
  if (size_ > 0) std::memset(slots_.data(), 0, slots_.capacity() * sizeof(uint64_t));
  size_ = 0;
}

}  // namespace nam::execution
