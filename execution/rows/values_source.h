#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "execution/task.h"
#include "plan/schema.h"
#include "types/value.h"

namespace nam::execution {

/// Rows that are part of the plan (plan::ValuesSource): constants, or none at all. Tasks share them by
/// chunks.
class ValuesSource final : public Source {
 public:
  /// Each row has a value for each slot, as plan::Check ensures. `rows` outlive the source.
  ValuesSource(const std::vector<std::vector<Value>>& rows, const plan::Schema& schema);
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  struct Values {  // one slot's, in the arrays that its form needs
    Physical physical = Physical::kInt128;
    std::vector<__int128> numbers;
    std::vector<std::string_view> texts;
    std::vector<uint8_t> truths, nulls;
  };

  const size_t rows_;
  std::vector<Values> slots_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace nam::execution
