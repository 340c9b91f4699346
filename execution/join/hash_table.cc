#include "execution/join/hash_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// At least one and a half for each row.
uint64_t HeadsFor(uint64_t rows) {
  return std::bit_ceil(std::max<uint64_t>(rows + rows / 2, 2));
}

}  // namespace

uint64_t HashTable::BytesNeeded(uint64_t rows, uint64_t pages, const RowLayout& layout) {
  return (HeadsFor(rows) + (pages << layout.rows_shift())) * sizeof(uint32_t);
}

absl::Status HashTable::Size(MemoryBudget& budget) {
  NAM_CHECK(heads_.size() == 0);
  NAM_ASSIGN_OR_RETURN(heads_, MappedArray<uint32_t>::Make(HeadsFor(rows_.rows()), budget));
  NAM_ASSIGN_OR_RETURN(
      next_, MappedArray<uint32_t>::Make(uint64_t{rows_.pages()} << rows_.layout().rows_shift(), budget));
  mask_ = heads_.size() - 1;
  return absl::OkStatus();
}

uint64_t HashTable::InsertPages(uint32_t first, uint32_t end) {
  uint64_t hashes[kInsertBatchRows];
  uint8_t nulls[kInsertBatchRows];
  uint64_t null_rows = 0;
  for (uint32_t p = first; p < end; ++p) {
    const std::byte* const page = rows_.page(p);
    const uint32_t page_rows = rows_.page_rows(p);
    for (uint32_t done = 0; done < page_rows; done += kInsertBatchRows) {
      const uint32_t count = std::min(kInsertBatchRows, page_rows - done);
      if (keys_.HashRows(page, done, count, hashes, nulls))
        null_rows += static_cast<uint64_t>(std::count(nulls, nulls + count, 1));
      Insert(hashes, nulls, (p << rows_.layout().rows_shift()) + done, count);
    }
  }
  return null_rows;
}

void HashTable::Insert(const uint64_t* hashes, const uint8_t* nulls, uint32_t first_row, uint32_t count) {
  bool chained = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kInsertRowsAhead < count && nulls[i + kInsertRowsAhead] == 0)
      Prefetch<true>(&heads_[hashes[i + kInsertRowsAhead] & mask_], sizeof(uint32_t));
    if (nulls[i] != 0) continue;
    const uint32_t row = first_row + i;
    const uint32_t before =
        std::atomic_ref<uint32_t>(heads_[hashes[i] & mask_]).exchange(row + 1, std::memory_order_relaxed);
    if (before == 0) continue;
    next_[row] = before;
    chained = true;
  }
  if (chained && !chained_.load(std::memory_order_relaxed)) chained_.store(true, std::memory_order_relaxed);
}

}  // namespace nam::execution
