#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/rows/row_table.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"

namespace nam::execution {

/// Result rows in any order, all of them or any `limit`: pages as they are.
class ResultSink final : public Sink {
 public:
  /// `plan` and `budget` outlive the sink.
  static absl::StatusOr<std::unique_ptr<ResultSink>> Make(const RowsPlan& plan, std::optional<uint64_t> limit,
                                                          MemoryBudget& budget);

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  bool Satisfied() const override { return taken_.load(std::memory_order_relaxed) >= limit_; }

  /// After all tasks: the rows as sealed pages of plan.layout(), which the sink owns.
  void Store(uint64_t attempt, std::vector<std::span<const std::byte>>& pages);
  /// What a PageSource reads, after all tasks.
  const RowTable& table() const { return *table_; }

 private:
  class Task;
  ResultSink(const RowsPlan& plan, uint64_t limit, std::unique_ptr<RowTable> table)
      : plan_(plan), limit_(limit), table_(std::move(table)) {}

  const RowsPlan& plan_;
  const uint64_t limit_;
  const std::unique_ptr<RowTable> table_;
  std::atomic<uint64_t> taken_ = 0;  // rows, also those beyond the limit that were left
};

}  // namespace nam::execution
