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
    const uint32_t count = std::min(kChunkRows, groups_ - first_),
                   first = std::exchange(first_, first_ + count);
    context.Charge(count, plan::work_cost::kFinishRowPs);
    const absl::Status read =
        empty_ != nullptr ? ReadEmpty(first, count, out) : set_->ReadFinal(first, count, memory_, out);
    return read.ok() ? Step::kHaveMore : context.Fail(read);
  }

 private:
  /// kHaveMore: there is a set, perhaps without groups.
  Step NextSet(TaskContext& context) {
    const size_t next = source_.next_.fetch_add(1, std::memory_order_relaxed);
    const bool no_keys = sink_.plan_.keys().size() == 0;
    absl::Status status;
    if (next < sink_.results_.size()) {
      set_ = sink_.results_[next].get();
      groups_ = set_->size();
    } else if (next == 0 && (no_keys || !source_.totals_.empty())) {
      empty_ = std::make_unique<GroupSet>(sink_.plan_, sink_.rows_, sink_.budget_);
      set_ = empty_.get();
      groups_ = no_keys ? 1 : static_cast<uint32_t>(source_.totals_.size());
      status = set_->AddEmptyGroups(groups_);
    } else {
      return Step::kDone;
    }
    first_ = 0;
    if (status.ok()) status = set_->FinishDistinct(memory_);
    return status.ok() ? Step::kHaveMore : context.Fail(status);
  }

  /// Reads groups without rows: a total is the value of the first key.
  absl::Status ReadEmpty(uint32_t first, uint32_t count, Chunk& out) {
    const GroupKeys& keys = sink_.plan_.keys();
    for (size_t k = 0; k < keys.size(); ++k) out.columns()[k] = NullColumn(keys.key(k).physical);
    if (keys.size() > 0) {
      out.columns()[0] = {.kind = Column::Kind::kValues,
                          .base = reinterpret_cast<const std::byte*>(source_.totals_.data() + first)};
    }
    out.SelectAll(count);
    return set_->ReadAggregates(first, count, memory_, out);
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
