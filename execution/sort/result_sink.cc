#include "execution/sort/result_sink.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/page_source.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"

namespace nam::execution {

class ResultSink::Task final : public SinkTask {
 public:
  explicit Task(ResultSink& sink) : sink_(sink), appender_(*sink.table_, sink.plan_.slots()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    if (sink_.window_ != nullptr) {
      gate_ = sink_.window_->Closed();
      if (gate_ != nullptr) return context.BlockOn(*gate_);
    }
    if (done_ == 0) {
      rows_ = in.selection();
      const uint64_t taken = sink_.taken_.fetch_add(rows_.count, std::memory_order_relaxed);
      if (taken >= sink_.limit_) return Step::kDone;
      rows_.count = static_cast<uint32_t>(std::min<uint64_t>(rows_.count, sink_.limit_ - taken));
      context.Charge(rows_.count, plan::work_cost::kSinkRowPs);
    }
    while (done_ < rows_.count) {
      const absl::Status status = appender_.AppendSome(in, rows_, done_, nullptr);
      if (!status.ok()) return context.Fail(status);
      if (sink_.window_ == nullptr) continue;
      sink_.window_->Add(appender_.TakeFullPages(), appender_);
      if (done_ == rows_.count) break;
      gate_ = sink_.window_->Closed();
      if (gate_ != nullptr) return context.BlockOn(*gate_);
    }
    done_ = 0;
    return sink_.Satisfied() ? Step::kDone : Step::kNeedInput;
  }

  Step Finish(TaskContext&) override {
    if (sink_.window_ != nullptr) sink_.window_->Add(appender_.TakePages(), appender_);
    return Step::kDone;
  }

 private:
  ResultSink& sink_;
  RowAppender appender_;
  Selection rows_;                    // of the chunk, without those beyond the limit
  uint32_t done_ = 0;                 // of them; 0: the chunk is new
  std::shared_ptr<const Gate> gate_;  // the task waits for it
};

absl::StatusOr<std::unique_ptr<ResultSink>> ResultSink::Make(const RowsPlan& plan,
                                                             std::optional<uint64_t> limit,
                                                             MemoryBudget& budget, uint64_t window_bytes) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  std::unique_ptr<PageWindow> window;
  if (window_bytes > 0) window = std::make_unique<PageWindow>(*table, window_bytes);
  return std::unique_ptr<ResultSink>(
      new ResultSink(plan, limit.value_or(UINT64_MAX), std::move(table), std::move(window)));
}

std::unique_ptr<SinkTask> ResultSink::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

std::unique_ptr<Source> ResultSink::RowsAtRest(bool /*in_order*/) {
  return std::make_unique<PageSource>(*table_);
}

absl::Status ResultSink::Store(TaskContext&, uint64_t attempt, StoredPages& pages) {
  if (window_ == nullptr) {
    SealPages(*table_, attempt, pages);
  } else {
    window_->Store(attempt, pages);
  }
  return absl::OkStatus();
}

}  // namespace nam::execution
