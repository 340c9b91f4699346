#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/budget_array.h"
#include "execution/rows/row_table.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"

namespace nam::execution {

/// ORDER BY … LIMIT: the first rows in an order. Each task keeps at most twice the limit, or some thousand
/// rows of a few MiB; all share a bound beyond which rows come too late.
class TopRows final : public Sink {
 public:
  /// `plan` and `budget` outlive the sink. Readers skip the first `offset` rows.
  static absl::StatusOr<std::unique_ptr<TopRows>> Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                       uint64_t limit, MemoryBudget& budget,
                                                       uint64_t offset = 0);
  ~TopRows() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override { return 1; }
  absl::Status Combine(TaskContext& context, uint32_t part) override;
  bool Satisfied() const override { return limit_ == 0; }
  std::unique_ptr<Source> RowsAtRest(bool in_order) override;
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override {
    return rows_.Store(context, attempt, pages);
  }

  /// After Combine.
  OrderedRows& rows() { return rows_; }

 private:
  class Task;
  struct Kept {  // by one task
    explicit Kept(MemoryBudget& budget) : rows(budget) {}
    BudgetArray<OrderedRow> rows;
    uint64_t size = 0;
  };
  TopRows(const RowsPlan& plan, std::span<const OrderSlot> order, uint64_t limit, MemoryBudget& budget,
          uint64_t offset, std::unique_ptr<RowTable> table);
  /// `prefix` is the greatest of `limit_` rows: rows beyond it are not among the first.
  void LowerCutoff(uint64_t prefix);

  const RowsPlan& plan_;
  const uint64_t limit_, offset_;
  MemoryBudget& budget_;
  const std::unique_ptr<RowTable> table_;
  const RowOrder order_;
  std::atomic<uint64_t> cutoff_ = UINT64_MAX;
  Mutex mutex_;  // guards kept_ while there are tasks
  std::vector<std::unique_ptr<Kept>> kept_;
  OrderedRows rows_;
};

}  // namespace nam::execution
