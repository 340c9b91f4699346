#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/budget_array.h"
#include "execution/rows/row_table.h"
#include "execution/sort/merge_passes.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/sort/run_merge.h"
#include "execution/sort/run_writer.h"
#include "execution/sort/scratch_run.h"
#include "execution/task.h"

namespace nam::execution {

/// ORDER BY without a limit; without keys: rows that a window counts through. Tasks sort spans as rows come;
/// at the end the threads merge all of them, each a range of the order that samples of the spans divide.
///
/// With runs: a task whose share of the budget is full writes its rows to scratch memory as a run and goes
/// on. If there is a run, written here or by servers, all rows are in runs at the end, and the table is
/// empty.
class Sorter final : public Sink {
 public:
  /// `plan` and `budget` outlive the sink. Readers of rows in memory skip the first `offset`.
  static absl::StatusOr<std::unique_ptr<Sorter>> Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                      MemoryBudget& budget, RunOptions runs = {},
                                                      OpenChannel open = {}, uint64_t offset = 0);
  ~Sorter() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;

  /// Runs in this order. DATA_LOSS: see RunsOf.
  absl::Status AddRuns(const proto::Directory& directory) override;
  std::unique_ptr<Source> RowsAtRest(bool in_order) override;

  // After all parts are combined:
  /// Rows in memory.
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override {
    return rows_.Store(context, attempt, pages);
  }
  /// Nothing, if no rows were in runs.
  void Count(proto::PipelineCounters& out) const override;
  /// Whether all rows are in scratch memory. Otherwise rows() has them; do not use it if they are.
  bool in_runs() const { return !scratch_.runs.empty(); }
  OrderedRows& rows() { return rows_; }
  const OrderedRows& rows() const { return rows_; }
  /// Merges the rows in runs. The sorter outlives the merge.
  absl::StatusOr<std::unique_ptr<RunMerge>> NewMerge(TaskContext& context) const;
  const RowsPlan& plan() const { return plan_; }

 private:
  class Task;
  struct Runs {  // one task's: kRunRows each but the last
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
         std::unique_ptr<RowTable> table, RunOptions runs, OpenChannel open, uint64_t offset);
  /// nullptr: there is no scratch memory.
  absl::StatusOr<std::unique_ptr<RunWriter>> NewWriter(TaskContext& context);
  /// Writes a task's rows, whose spans are sorted, as a run, and empties it.
  absl::Status WriteRun(TaskContext& context, Runs& rows, RunWriter& writer);
  absl::Status EndWriter(RunWriter& writer);
  /// Whether rows are in memory.
  bool HasRows() const;
  /// Turns the tasks' rows in memory into runs, and merges all to as many as can be read at once.
  absl::Status CombineRuns(TaskContext& context);
  std::vector<OrderedRow> Splitters(std::span<const std::span<const OrderedRow>> runs, uint32_t parts) const;

  const RowsPlan& plan_;
  MemoryBudget& budget_;
  std::unique_ptr<RowTable> table_;  // nullptr: all rows are in runs
  const RowOrder order_;
  const std::vector<OrderSlot> keys_;
  const RunOptions run_options_;
  const OpenChannel open_;
  const uint64_t offset_;
  Mutex mutex_;  // guards runs_, scratch_ and pages_written_ while there are tasks
  std::vector<std::unique_ptr<Runs>> runs_;
  std::vector<Part> parts_;
  std::atomic<size_t> parts_left_ = 0;
  absl::Status combine_error_;
  bool by_runs_ = false;  // set once all tasks have ended: all rows become runs
  MergedRuns scratch_;
  uint64_t runs_left_ = 0;  // by all tasks, here and at servers
  uint64_t pages_written_ = 0;
  uint32_t passes_ = 0;  // before the last merge
  OrderedRows rows_;
};

/// The rows of a complete sorter in their order, in memory or in runs. One task reads rows in runs. The
/// sorter outlives the source.
class SortedSource final : public Source {
 public:
  SortedSource(const Sorter& sorter, const OrderedSource::Options& options)
      : sorter_(sorter), in_memory_(sorter.rows(), options) {}

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  const Sorter& sorter_;
  OrderedSource in_memory_;
};

}  // namespace nam::execution
