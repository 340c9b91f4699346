#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "execution/join/mapped_array.h"
#include "execution/join/row_keys.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// Rows of a build side are inserted in batches. Their heads are changed by atomic exchange, which waits for
/// its cache line: prefetched so many rows ahead.
inline constexpr uint32_t kInsertBatchRows = 1024, kInsertRowsAhead = 16;

/// The build side of a join by any keys: leads from a hash to rows of a RowTable.
///
///     heads[hash mod size] → row + 1 ─ next[row] → row + 1 ─ … → 0
///
/// A chain has the rows of all keys whose hashes share their lowest bits; a probe compares keys. Sized once,
/// when the number of rows is known, then filled by all threads at once, page by page, then read only.
class HashTable {
 public:
  /// `rows` and `keys` outlive the table.
  HashTable(const RowTable& rows, const RowKeys& keys) : rows_(rows), keys_(keys) {}

  /// The bytes of a table of so many rows, in pages of this layout.
  static uint64_t BytesNeeded(uint64_t rows, uint64_t pages, const RowLayout& layout);
  /// Makes room for the rows that the RowTable has now. RESOURCE_EXHAUSTED if the budget does not allow it.
  absl::Status Size(MemoryBudget& budget);
  /// Inserts the rows of pages [first, end) without NULL keys; returns the number of the others. Any thread;
  /// each page once.
  uint64_t InsertPages(uint32_t first, uint32_t end);

  // After the build:
  /// Whether a chain has more than one row.
  bool chained() const { return chained_.load(std::memory_order_relaxed); }
  uint32_t Head(uint64_t hash) const { return heads_[hash & mask_]; }
  uint32_t Next(uint32_t row) const { return next_[row]; }

 private:
  void Insert(const uint64_t* hashes, const uint8_t* nulls, uint32_t first_row, uint32_t count);
  const RowTable& rows_;
  const RowKeys& keys_;
  uint64_t mask_ = 0;
  MappedArray<uint32_t> heads_;
  MappedArray<uint32_t> next_;
  std::atomic<bool> chained_ = false;
};

}  // namespace nam::execution
