#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/budget_array.h"
#include "execution/chunk.h"
#include "partitioner/record_row.h"
#include "plan/schema.h"

namespace nam::execution {

/// Stored rows of a record table as columns of values, one array a slot: position p is row p. Texts are not
/// copied: they lie in the rows, which stay as long as the chunk does. One thread; all references outlive it.
class RecordColumns {
 public:
  /// `columns` of the table, and their types.
  RecordColumns(const partitioner::RecordLayout& layout, std::span<const uint32_t> columns,
                const plan::Schema& schema, MemoryBudget& budget);

  /// Allocates the arrays. RESOURCE_EXHAUSTED: over budget.
  absl::Status Reserve();
  /// A slot's column in chunks. Later Decode calls for the slot keep it valid.
  const Column& column(uint32_t slot) const { return slots_[slot].column; }
  /// Decodes the values of at most kChunkRows rows, at the selected positions. DATA_LOSS: a number that the
  /// column cannot hold, and for which plans make no room.
  absl::Status Decode(uint32_t slot, std::span<const std::byte* const> rows, Selection selection);

 private:
  struct Slot {
    partitioner::RecordLayout::Field field;
    int64_t low = INT64_MIN, high = INT64_MAX;  // bounds of numbers of 64 bits
    __int128 wide_low = 0, wide_high = 0;       // of 128
    BudgetArray<std::byte> values;
    BudgetArray<uint8_t> nulls;  // for slots that may be NULL, except truths
    Column column;
  };
  /// False: a number is out of bounds.
  bool DecodeNumbers(Slot& slot, std::span<const std::byte* const> rows, Selection selection);

  std::vector<Slot> slots_;
};

}  // namespace nam::execution
