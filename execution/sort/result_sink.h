#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "execution/rows/row_table.h"
#include "execution/sort/page_window.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"

namespace nam::execution {

/// Result rows in any order, all of them or any `limit`: pages as they are, all at the end or a window at a
/// time.
class ResultSink final : public Sink {
 public:
  /// `plan` and `budget` outlive the sink. With `window_bytes`, tasks wait whenever their full pages reach
  /// that many bytes, until these have been taken; 0: they never wait.
  static absl::StatusOr<std::unique_ptr<ResultSink>> Make(const RowsPlan& plan, std::optional<uint64_t> limit,
                                                          MemoryBudget& budget, uint64_t window_bytes = 0);

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  bool Satisfied() const override { return taken_.load(std::memory_order_relaxed) >= limit_; }
  PageWindow* window() override { return window_.get(); }

  /// For a sink without windows.
  std::unique_ptr<Source> RowsAtRest(bool in_order) override;
  /// Pages of plan.layout(), without those of windows that were taken.
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override;

 private:
  class Task;
  ResultSink(const RowsPlan& plan, uint64_t limit, std::unique_ptr<RowTable> table,
             std::unique_ptr<PageWindow> window)
      : plan_(plan), limit_(limit), table_(std::move(table)), window_(std::move(window)) {}

  const RowsPlan& plan_;
  const uint64_t limit_;
  const std::unique_ptr<RowTable> table_;
  const std::unique_ptr<PageWindow> window_;
  std::atomic<uint64_t> taken_ = 0;  // rows, including those beyond the limit
};

}  // namespace nam::execution
