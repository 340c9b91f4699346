#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/budget_array.h"
#include "execution/rows/row_table.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"

namespace nam::execution {

/// Sorted runs of this many rows are merged: one is sorted between two looks at whether the query was
/// cancelled.
inline constexpr uint32_t kRunRows = 1 << 16;

/// Merges sorted runs into `out`, which has room for all. CANCELLED soon after the query was.
absl::Status MergeRuns(TaskContext& context, const RowOrder& order,
                       std::vector<std::span<const OrderedRow>> runs, OrderedRow* out);

/// Rows of a table in an order. Owned by the sink that has made them.
class OrderedRows {
 public:
  /// All outlive this.
  OrderedRows(const RowsPlan& plan, RowTable& table, MemoryBudget& budget)
      : plan_(plan), table_(table), budget_(budget), rows_(budget) {}

  BudgetArray<OrderedRow>& rows() { return rows_; }
  uint64_t size() const { return size_; }
  void set_size(uint64_t size) { size_ = size; }

  /// Writes the rows, in order, to sealed pages of plan.layout(), which this owns.
  absl::Status Store(TaskContext& context, uint64_t attempt, std::vector<std::span<const std::byte>>& pages);

  /// The rows in order as chunks of the plan's schema, for one task. This outlives it.
  std::unique_ptr<SourceTask> NewSourceTask() const;

 private:
  class Task;
  const RowsPlan& plan_;
  RowTable& table_;
  MemoryBudget& budget_;
  BudgetArray<OrderedRow> rows_;
  uint64_t size_ = 0;
  std::unique_ptr<RowTable> stored_;
};

/// The rows of a sink in their order. The sink outlives the source; an order is kept by one task alone.
class OrderedSource final : public Source {
 public:
  explicit OrderedSource(const OrderedRows& rows) : rows_(rows) {}
  std::unique_ptr<SourceTask> NewTask(TaskContext&) override { return rows_.NewSourceTask(); }

 private:
  const OrderedRows& rows_;
};

}  // namespace nam::execution
