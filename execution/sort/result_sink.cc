#include "execution/sort/result_sink.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"

namespace nam::execution {

class ResultSink::Task final : public SinkTask {
 public:
  explicit Task(ResultSink& sink) : sink_(sink), appender_(*sink.table_, sink.plan_.slots()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    Selection rows = in.selection();
    const uint64_t taken = sink_.taken_.fetch_add(rows.count, std::memory_order_relaxed);
    if (taken >= sink_.limit_) return Step::kDone;
    rows.count = static_cast<uint32_t>(std::min<uint64_t>(rows.count, sink_.limit_ - taken));
    context.Charge(rows.count, plan::work_cost::kSinkRowPs);
    const absl::Status status = appender_.Append(in, rows, nullptr);
    if (!status.ok()) return context.Fail(status);
    return sink_.Satisfied() ? Step::kDone : Step::kNeedInput;
  }

 private:
  ResultSink& sink_;
  RowAppender appender_;
};

absl::StatusOr<std::unique_ptr<ResultSink>> ResultSink::Make(const RowsPlan& plan,
                                                             std::optional<uint64_t> limit,
                                                             MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  return std::unique_ptr<ResultSink>(new ResultSink(plan, limit.value_or(UINT64_MAX), std::move(table)));
}

std::unique_ptr<SinkTask> ResultSink::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

void ResultSink::Store(uint64_t attempt, std::vector<std::span<const std::byte>>& pages) {
  SealPages(*table_, attempt, pages);
}

}  // namespace nam::execution
