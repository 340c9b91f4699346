#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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

  /// nullptr: it has no windows.
  PageWindow* window() { return window_.get(); }
  /// Takes the full window: its rows as sealed pages, and the pages to give back once they have been read.
  /// Tasks go on meanwhile.
  std::vector<uint32_t> StoreWindow(uint64_t attempt, std::vector<std::span<const std::byte>>& pages);
  /// After all tasks: stores the rows as sealed pages of plan.layout(), which the sink owns, without those of
  /// windows that were taken.
  void Store(uint64_t attempt, std::vector<std::span<const std::byte>>& pages);
  /// The input of a PageSource, after all tasks. For a sink without windows.
  const RowTable& table() const { return *table_; }

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
