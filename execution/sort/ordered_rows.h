#pragma once

#include <atomic>
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

/// Sorted runs of this many rows are merged. Cancellation is checked between two sorts of one.
inline constexpr uint32_t kRunRows = 1 << 16;

/// Merges sorted spans of one table's rows on demand.
class SpanMerge {
 public:
  /// The order outlives this, as do the spans.
  SpanMerge(const RowOrder& order, std::vector<std::span<const OrderedRow>> spans);
  /// Returns the next rows, at most so many; 0: there are no more.
  uint64_t Take(OrderedRow* out, uint64_t most);

 private:
  const RowOrder& order_;
  std::vector<std::span<const OrderedRow>> spans_;  // a heap: the first one's row is the least
};

/// Merges sorted runs into `out`, which has room for all. CANCELLED soon after the query is.
absl::Status MergeRuns(TaskContext& context, const RowOrder& order,
                       std::vector<std::span<const OrderedRow>> runs, OrderedRow* out);

/// Rows of a table in an order. Owned by the sink that made them.
class OrderedRows {
 public:
  /// All outlive this.
  OrderedRows(const RowsPlan& plan, RowTable& table, MemoryBudget& budget)
      : plan_(plan), table_(table), budget_(budget), rows_(budget) {}

  BudgetArray<OrderedRow>& rows() { return rows_; }
  uint64_t size() const { return size_; }
  const plan::Schema& schema() const { return plan_.schema(); }
  const RowTable& table() const { return table_; }
  /// The row at this place of the order.
  uint32_t row(uint64_t place) const { return rows_[place].row; }
  void set_size(uint64_t size) { size_ = size; }

  /// Writes the rows, in order, to sealed pages of plan.layout(), which this owns.
  absl::Status Store(TaskContext& context, uint64_t attempt, std::vector<std::span<const std::byte>>& pages);

  /// Reads the rows at places [first, first + count) as the first columns of a chunk of the plan's schema.
  /// Their numbers go to `numbers`, which the columns point to.
  void Read(uint64_t first, uint32_t count, uint32_t* numbers, Chunk& out) const;

 private:
  const RowsPlan& plan_;
  RowTable& table_;
  MemoryBudget& budget_;
  BudgetArray<OrderedRow> rows_;
  uint64_t size_ = 0;
  std::unique_ptr<RowTable> stored_;
};

/// The rows of a complete sink in their order. The sink outlives the source.
class OrderedSource final : public Source {
 public:
  struct Options {
    uint64_t offset = 0;  // rows skipped at the beginning
    uint64_t limit = UINT64_MAX;
    /// One task reads all rows, in their order. Otherwise tasks share ranges of the order, and each reads its
    /// own in order.
    bool in_order = true;
  };
  explicit OrderedSource(const OrderedRows& rows) : OrderedSource(rows, Options()) {}
  OrderedSource(const OrderedRows& rows, const Options& options);

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  const OrderedRows& rows_;
  const uint64_t range_rows_;
  const uint64_t end_;          // of the places to read, if there are as many
  std::atomic<uint64_t> next_;  // place of the first row that no task has
};

}  // namespace nam::execution
