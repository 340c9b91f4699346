#include "execution/task.h"

#include <algorithm>
#include <utility>

#include "base/cache_costs.h"

namespace nam::execution {

absl::Status Sink::AddRuns(const proto::Directory&) {
  return absl::InternalError("a compute server reports runs that were not requested");
}

PipelineTask::PipelineTask(std::unique_ptr<SourceTask> source, std::vector<std::unique_ptr<StepTask>> steps,
                           std::unique_ptr<SinkTask> sink, std::vector<std::unique_ptr<Chunk>> chunks)
    : source_(std::move(source)),
      steps_(std::move(steps)),
      sink_(std::move(sink)),
      chunks_(std::move(chunks)),
      rows_(steps_.size() + 1),
      more_(steps_.size()) {
  NAM_CHECK(chunks_.size() == steps_.size() + 1);
}

Step PipelineTask::Run(TaskContext& context) {
  const Step step = ended_ ? Step::kDone : Advance(context);
  context.Settle();
  return step;
}

Step PipelineTask::Advance(TaskContext& context) {
  Step step = Step::kHaveMore;
  while (step == Step::kHaveMore) {
    // Checked before each call, because one chunk may keep the steps busy for long.
    if (context.cancelled()) return context.Fail(QueryCancelled());
    if (!filled_) {
      step = Refill(context);
    } else if (at_ == steps_.size()) {
      step = Consume(context);
    } else {
      step = Push(context);
    }
  }
  return step;
}

Step PipelineTask::Consume(TaskContext& context) {
  const Step step = sink_->Consume(context, *chunks_[at_]);
  if (step == Step::kBlocked || step == Step::kFailed) return step;
  NAM_CHECK(step == Step::kNeedInput || step == Step::kDone, "a sink takes its chunk whole");
  filled_ = false;
  if (step == Step::kDone) CutOff(steps_.size());
  return Step::kHaveMore;
}

Step PipelineTask::Push(TaskContext& context) {
  Chunk& out = *chunks_[at_ + 1];
  const Step step = steps_[at_]->Push(context, *chunks_[at_], out);
  if (step == Step::kBlocked || step == Step::kFailed) return step;
  more_[at_] = step == Step::kHaveMore;
  if (step == Step::kDone) CutOff(at_ + 1);
  filled_ = false;
  return out.selection().count > 0 ? Filled(at_ + 1) : Step::kHaveMore;
}

Step PipelineTask::Refill(TaskContext& context) {
  for (size_t i = steps_.size(); i > first_live_; --i) {
    if (!more_[i - 1]) continue;
    at_ = i - 1;
    filled_ = true;
    return Step::kHaveMore;
  }
  if (source_state_ == SourceState::kLive) {
    const Step step = source_->Next(context, *chunks_[0]);
    if (step == Step::kHaveMore) return Filled(0);
    if (step != Step::kDone) return step;
  } else if (source_state_ == SourceState::kUnwanted) {
    source_->Stop();  // not before: rows of its last chunk were still in the steps
  }
  source_state_ = SourceState::kEnded;
  return Drain(context);
}

Step PipelineTask::Drain(TaskContext& context) {
  for (; first_live_ < steps_.size(); ++first_live_) {
    const Step step = steps_[first_live_]->Drain(context, *chunks_[first_live_ + 1]);
    NAM_CHECK(step != Step::kNeedInput, "there is no more input");
    if (step == Step::kHaveMore) return Filled(first_live_ + 1);
    if (step != Step::kDone) return step;
  }
  const Step step = sink_->Finish(context);
  NAM_CHECK(step != Step::kNeedInput, "there is no more input");
  ended_ = step == Step::kDone;
  return step;
}

Step PipelineTask::Filled(size_t at) {
  const uint32_t rows = chunks_[at]->selection().count;
  NAM_CHECK(rows > 0, "a chunk without rows is not handed on");
  at_ = at;
  filled_ = true;
  rows_[at] += rows;
  return Step::kHaveMore;
}

void PipelineTask::CutOff(size_t step) {
  first_live_ = std::max(first_live_, step);
  std::fill_n(more_.begin(), step, uint8_t{0});
  if (source_state_ == SourceState::kLive) source_state_ = SourceState::kUnwanted;
}

void ChargeAccesses(TaskContext& context, uint64_t count, uint64_t working_set_bytes) {
  Clock& clock = context.clock();
  if (&clock == &RealClock()) return;  // cheaper to test than its type
  const auto* const caches = dynamic_cast<const CacheCosts*>(&clock);
  if (caches != nullptr) context.Charge(count, caches->AccessPs(working_set_bytes));
}

}  // namespace nam::execution
