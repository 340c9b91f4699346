#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "plan/schema.h"

/// Steps that process one tuple at a time and copy none: the input's columns pass unchanged, or along the
/// positions of repeated tuples.
namespace nam::execution {

/// Passes tuples for which all conditions are true.
class FilterOperator final : public StepOperator {
 public:
  explicit FilterOperator(std::unique_ptr<const Program> conditions) : conditions_(std::move(conditions)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  size_t by_row_nodes() const { return conditions_->by_row_nodes(); }

 private:
  class Task;
  const std::unique_ptr<const Program> conditions_;
};

/// Computes an output column from each expression. Plain slots pass unchanged, codes included.
class ProjectOperator final : public StepOperator {
 public:
  explicit ProjectOperator(std::unique_ptr<const Program> outputs) : outputs_(std::move(outputs)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  size_t by_row_nodes() const { return outputs_->by_row_nodes(); }

 private:
  class Task;
  const std::unique_ptr<const Program> outputs_;
};

/// Emits each tuple once for each grouping set: see plan::ExpandStep. Chunks of the output have as many row
/// sets as those of the input have distinct ones: none of their own.
class ExpandOperator final : public StepOperator {
 public:
  ExpandOperator(plan::ExpandStep expand, const plan::Schema& input);
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  const plan::ExpandStep expand_;
  const size_t input_columns_;
  std::vector<Physical> keys_;
  std::vector<std::vector<uint8_t>> has_;  // by set and key
  std::vector<int64_t> numbers_;           // of sets: constants point to them
};

/// Repeats each tuple as often as a slot of it says: see plan::RepeatStep.
class RepeatOperator final : public StepOperator {
 public:
  /// `input_row_sets`: an upper bound of distinct row sets among the input's columns.
  static absl::StatusOr<std::unique_ptr<RepeatOperator>> Make(const plan::RepeatStep& repeat,
                                                              const plan::Schema& input,
                                                              uint32_t input_row_sets);
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  /// The chunk that its tasks fill.
  std::unique_ptr<Chunk> NewChunk() const { return std::make_unique<Chunk>(columns_, 1 + input_row_sets_); }

 private:
  class Task;
  RepeatOperator(size_t columns, std::unique_ptr<const Program> times, uint32_t input_row_sets)
      : columns_(columns), times_(std::move(times)), input_row_sets_(input_row_sets) {}

  const size_t columns_;
  const std::unique_ptr<const Program> times_;
  const uint32_t input_row_sets_;
};

}  // namespace nam::execution
