#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/memory_budget.h"
#include "execution/task.h"
#include "plan/schema.h"
#include "types/value.h"

namespace nam::session {

/// The rows of a result as the client gets them. One task; values are made here and nowhere else.
class ResultRows final : public execution::Sink {
 public:
  /// `types` are the columns' as the values say. The budget outlives the sink, which holds what the rows take
  /// until its end.
  static absl::StatusOr<std::unique_ptr<ResultRows>> Make(const plan::Schema& input, std::vector<Type> types,
                                                          execution::MemoryBudget& budget);
  ~ResultRows() override { budget_.Give(charged_); }

  std::unique_ptr<execution::SinkTask> NewTask(execution::TaskContext& context) override;

  std::vector<std::vector<Value>>& rows() { return rows_; }

 private:
  class Task;
  ResultRows(std::vector<Type> types, std::unique_ptr<const execution::Program> columns,
             execution::MemoryBudget& budget);
  absl::Status Add(const std::vector<const execution::Vector*>& columns, execution::Selection rows);

  execution::MemoryBudget& budget_;
  const std::unique_ptr<const execution::Program> columns_;
  const std::vector<Type> types_;
  uint64_t charged_ = 0;
  std::vector<std::vector<Value>> rows_;
};

}  // namespace nam::session
