#include <algorithm>
#include <utility>

#include "execution/aggregate/aggregate_sink.h"
#include "plan/work_cost.h"

namespace nam::execution {

class AggregateSource::Task final : public SourceTask {
 public:
  explicit Task(AggregateSource& source) : source_(source), sink_(source.sink_) {}

  Step Next(TaskContext& context, Chunk& out) override {
    while (first_ == groups_) {
      if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
      const Step step = NextSet(context);
      if (step != Step::kHaveMore) {
        out.SelectAll(0);
        return step;
      }
    }
    const uint32_t count = std::min(kChunkRows, groups_ - first_);
    context.Charge(count, plan::work_cost::kFinishRowPs);
    const absl::Status read = set_->ReadFinal(std::exchange(first_, first_ + count), count, memory_, out);
    return read.ok() ? Step::kHaveMore : context.Fail(read);
  }

 private:
  /// kHaveMore: there is one, maybe without groups.
  Step NextSet(TaskContext& context) {
    const size_t next = source_.next_.fetch_add(1, std::memory_order_relaxed);
    absl::Status status;
    if (next < sink_.results_.size()) {
      set_ = sink_.results_[next].get();
      groups_ = set_->size();
    } else if (next == 0 && sink_.plan_.keys().size() == 0) {
      empty_ = std::make_unique<GroupSet>(sink_.plan_, sink_.rows_, sink_.budget_);
      set_ = empty_.get();
      groups_ = 1;
      status = set_->AddEmptyGroup();
    } else {
      return Step::kDone;
    }
    first_ = 0;
    if (status.ok()) status = set_->CountDistinct(memory_);
    return status.ok() ? Step::kHaveMore : context.Fail(status);
  }

  AggregateSource& source_;
  AggregateSink& sink_;
  std::unique_ptr<GroupSet> empty_;
  GroupSet* set_ = nullptr;
  uint32_t first_ = 0, groups_ = 0;
  GroupSet::Memory memory_;
};

std::unique_ptr<SourceTask> AggregateSource::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
