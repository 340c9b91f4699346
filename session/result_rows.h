#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/memory_budget.h"
#include "execution/task.h"
#include "plan/schema.h"
#include "session/session.h"

namespace nam::session {

/// Passes the rows of a result to the client, a chunk at a time. One task.
class ResultRows final : public execution::Sink {
 public:
  /// The budget pays for the rows that the receiver holds until the sink's end. Both outlive it.
  static absl::StatusOr<std::unique_ptr<ResultRows>> Make(const plan::Schema& input,
                                                          std::vector<ResultSet::Column> columns,
                                                          RowReceiver& receiver,
                                                          execution::MemoryBudget& budget);
  ~ResultRows() override { budget_.Release(charged_); }

  std::unique_ptr<execution::SinkTask> NewTask(execution::TaskContext& context) override;

  /// Called at the end: tells the columns to a receiver that has got no rows.
  absl::Status End();
  uint64_t rows() const { return rows_; }

 private:
  class Task;
  ResultRows(std::vector<ResultSet::Column> columns, std::unique_ptr<const execution::Program> values,
             RowReceiver& receiver, execution::MemoryBudget& budget);
  absl::Status Begin();
  absl::Status Add(const ResultBatch& rows);

  const std::vector<ResultSet::Column> columns_;
  const std::unique_ptr<const execution::Program> values_;
  RowReceiver& receiver_;
  execution::MemoryBudget& budget_;
  uint64_t charged_ = 0;
  uint64_t rows_ = 0;
  bool begun_ = false;
};

}  // namespace nam::session
