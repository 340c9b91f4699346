#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "execution/chunk.h"
#include "execution/expression/program.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "plan/schema.h"

namespace nam::execution {

/// Repeats each tuple for each number of a series: see plan::SeriesStep. A series of any length takes the
/// memory of one chunk. 22023 for a step of 0, 22008 for a timestamp out of range.
class SeriesOperator final : public StepOperator {
 public:
  /// `input_row_sets`: an upper bound of distinct row sets among the input's columns.
  static absl::StatusOr<std::unique_ptr<SeriesOperator>> Make(const plan::SeriesStep& series,
                                                              const plan::Schema& input,
                                                              uint32_t input_row_sets,
                                                              MemoShare* memos = nullptr);
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;
  /// The chunk that its tasks fill.
  std::unique_ptr<Chunk> NewChunk() const {
    return std::make_unique<Chunk>(input_columns_ + 1, 1 + input_row_sets_);
  }
  size_t by_row_nodes() const { return ends_->by_row_nodes(); }

 private:
  class Task;
  SeriesOperator(size_t input_columns, bool times, std::unique_ptr<const Program> ends,
                 uint32_t input_row_sets)
      : input_columns_(input_columns),
        times_(times),
        ends_(std::move(ends)),
        input_row_sets_(input_row_sets) {}

  const size_t input_columns_;
  const bool times_;                           // timestamps, whose step is an interval
  const std::unique_ptr<const Program> ends_;  // first, last, step
  const uint32_t input_row_sets_;
};

}  // namespace nam::execution
