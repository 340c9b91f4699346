#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/budget_array.h"
#include "execution/rows/row_table.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"

namespace nam::execution {

/// ORDER BY without a limit, in memory; without keys: rows that a window counts through. Tasks sort runs as
/// rows come; at the end the threads merge all runs, each a range of the order that samples of the runs
/// divide.
class Sorter final : public Sink {
 public:
  /// `plan` and `budget` outlive the sink.
  static absl::StatusOr<std::unique_ptr<Sorter>> Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                      MemoryBudget& budget);
  ~Sorter() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;

  /// After all parts are combined.
  OrderedRows& rows() { return rows_; }

 private:
  class Task;
  struct Runs {  // of one task: kRunRows each but the last
    explicit Runs(MemoryBudget& budget) : rows(budget) {}
    BudgetArray<OrderedRow> rows;
    uint64_t size = 0;
  };
  struct Part {
    std::vector<std::span<const OrderedRow>> runs;
    uint64_t first = 0;  // place of its first row in the order
    uint64_t rows = 0;
  };
  Sorter(const RowsPlan& plan, std::span<const OrderSlot> order, MemoryBudget& budget,
         std::unique_ptr<RowTable> table);
  std::vector<OrderedRow> Splitters(std::span<const std::span<const OrderedRow>> runs, uint32_t parts) const;

  const RowsPlan& plan_;
  MemoryBudget& budget_;
  const std::unique_ptr<RowTable> table_;
  const RowOrder order_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Runs>> runs_;
  std::vector<Part> parts_;
  std::atomic<size_t> parts_left_ = 0;
  absl::Status combine_error_;
  OrderedRows rows_;
};

}  // namespace nam::execution
