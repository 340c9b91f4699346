#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/rows/row_table.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/sort/run_writer.h"
#include "execution/sort/scratch_run.h"
#include "execution/task.h"

namespace nam::execution {

/// Rows of an attempt that the session sorts (plan::ResultSink::runs). Tasks keep them as they come. A task
/// whose share of the budget is full sorts its rows and writes them to scratch memory as a run, and then so
/// do all others at the end. If none was full, all rows are the attempt's result, in any order.
class RunSink final : public Sink {
 public:
  /// `plan` is the result's, `budget` outlives the sink.
  static absl::StatusOr<std::unique_ptr<RunSink>> Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                       const RunOptions& options, MemoryBudget& budget);
  ~RunSink() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;
  bool writes_scratch() const override { return true; }

  // After all parts are combined:
  /// Rows that are not in runs.
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override;
  void Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const override;
  void Count(proto::PipelineCounters& out) const override;
  /// Whether all rows are in runs.
  bool in_runs() const { return in_runs_; }
  const std::vector<ScratchRun>& runs() const { return runs_; }

 private:
  class Task;
  RunSink(const RowsPlan& plan, std::span<const OrderSlot> order, const RunOptions& options,
          MemoryBudget& budget, std::unique_ptr<RowTable> table);
  absl::StatusOr<std::unique_ptr<RunWriter>> NewWriter(TaskContext& context);
  /// Writes the rows of the pages as a run.
  absl::Status Write(TaskContext& context, std::span<const uint32_t> pages, RunWriter& writer);
  absl::Status End(RunWriter& writer);

  const RowsPlan& plan_;
  const RunOptions options_;
  const uint64_t share_;
  MemoryBudget& budget_;
  const std::unique_ptr<RowTable> table_;
  const RowOrder order_;
  std::atomic<bool> in_runs_ = false;
  Mutex mutex_;                              // guards the members below while there are tasks
  std::vector<std::vector<uint32_t>> left_;  // pages that their tasks have not written
  std::vector<ScratchRun> runs_;
  uint64_t pages_written_ = 0, bytes_written_ = 0;
};

}  // namespace nam::execution
