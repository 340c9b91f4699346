#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "plan/schema.h"

namespace nam::execution {

/// Passes so many tuples of all tasks together after `offset` others, in order of arrival. With ties it also
/// passes those after them that equal the last one, if one task alone pushes them in order: see
/// plan::LimitStep.
class LimitOperator final : public StepOperator {
 public:
  static absl::StatusOr<std::unique_ptr<LimitOperator>> Make(const plan::LimitStep& limit,
                                                             const plan::Schema& input);
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  LimitOperator(uint64_t offset, uint64_t end, std::unique_ptr<const Program> ties)
      : offset_(offset), end_(end), ties_(std::move(ties)) {}

  const uint64_t offset_;
  const uint64_t end_;                         // offset and limit
  const std::unique_ptr<const Program> ties_;  // nullptr: no ties
  std::atomic<uint64_t> seen_ = 0;             // including those beyond the end
};

}  // namespace nam::execution
