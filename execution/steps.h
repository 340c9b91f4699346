#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "execution/expression/program.h"
#include "execution/task.h"

/// Steps that look at one tuple at a time and copy none: the columns of what comes flow on as they are.
namespace nam::execution {

/// Tuples where all conditions are true flow on.
class FilterOperator final : public StepOperator {
 public:
  explicit FilterOperator(std::unique_ptr<const Program> conditions) : conditions_(std::move(conditions)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  size_t by_row_nodes() const { return conditions_->by_row_nodes(); }

 private:
  class Task;
  const std::unique_ptr<const Program> conditions_;
};

/// Each output is a column. What is a slot as it is stays what it was, codes included.
class ProjectOperator final : public StepOperator {
 public:
  explicit ProjectOperator(std::unique_ptr<const Program> outputs) : outputs_(std::move(outputs)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  size_t by_row_nodes() const { return outputs_->by_row_nodes(); }

 private:
  class Task;
  const std::unique_ptr<const Program> outputs_;
};

/// So many tuples of all tasks together behind `offset` others, whichever come first.
class LimitOperator final : public StepOperator {
 public:
  explicit LimitOperator(uint64_t offset, std::optional<uint64_t> rows)
      : offset_(offset), end_(offset + std::min(rows.value_or(UINT64_MAX), UINT64_MAX - offset)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  const uint64_t offset_;
  const uint64_t end_;              // offset and limit
  std::atomic<uint64_t> seen_ = 0;  // also those beyond the end
};

}  // namespace nam::execution
