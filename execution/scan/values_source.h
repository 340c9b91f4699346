#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "execution/task.h"
#include "plan/schema.h"
#include "types/value.h"

namespace nam::execution {

/// Rows that are part of the plan, as chunks of values. Tasks share them by chunks.
class ValuesSource final : public Source {
 public:
  /// `rows` outlive the source: texts lie there.
  ValuesSource(plan::Schema schema, const std::vector<std::vector<Value>>& rows)
      : schema_(std::move(schema)), rows_(rows) {}

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  const plan::Schema schema_;
  const std::vector<std::vector<Value>>& rows_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace nam::execution
