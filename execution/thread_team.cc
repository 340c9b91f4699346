#include "execution/thread_team.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// Gates are opened by running tasks of the same pipeline, or by a client that may be slow: the longer that
/// takes, the less often a thread checks.
constexpr int64_t kGateCheckUs = 100;
constexpr int64_t kGateCheckUsMax = 10'000;

class GuardedSource final : public SourceTask {
 public:
  GuardedSource(std::unique_ptr<SourceTask> source, const std::atomic<bool>& stop)
      : source_(std::move(source)), stop_(stop) {}
  Step Next(TaskContext& context, Chunk& out) override {
    if (stop_.load(std::memory_order_relaxed)) return context.Fail(QueryCancelled());
    return source_->Next(context, out);
  }
  void Stop() override { source_->Stop(); }

 private:
  const std::unique_ptr<SourceTask> source_;
  const std::atomic<bool>& stop_;
};

}  // namespace

absl::Status AwaitGate(fabric::Fabric& fabric, TaskContext& context, const Gate& gate,
                       const std::atomic<bool>& stop) {
  const std::unique_ptr<fabric::Event> never = fabric.CreateEvent();
  Clock& clock = context.clock();
  const int64_t since_ns = clock.NowNs();
  while (!gate.open()) {
    if (context.cancelled() || stop.load(std::memory_order_relaxed)) return QueryCancelled();
    const int64_t waited_us = (clock.NowNs() - since_ns) / 1000;
    never->Wait(clock.After(std::clamp(waited_us / 4, kGateCheckUs, kGateCheckUsMax)));
  }
  return absl::OkStatus();
}

ThreadTeam::ThreadTeam(fabric::Fabric& fabric, MemoryBudget& budget, const std::atomic<bool>& cancel,
                       size_t size)
    : fabric_(fabric) {
  contexts_.emplace_back(fabric.clock(), budget, cancel);
  while (contexts_.size() < size) contexts_.emplace_back(fabric.clock(), budget, stop_);
}

absl::Status ThreadTeam::Together(size_t threads, const Work& work) {
  if (threads > 1) {
    WorkWithOthers(threads, work);
  } else if (!stopped()) {
    Note(work(0));
  }
  const MutexLock lock(mutex_);
  return first_error_;
}

void ThreadTeam::WorkWithOthers(size_t threads, const Work& work) {
  const std::unique_ptr<fabric::Event> ended = fabric_.CreateEvent();
  std::atomic<size_t> working = 1;  // the caller
  const auto end = [&] {
    if (working.fetch_sub(1) == 1) ended->Set();
  };
  std::vector<std::unique_ptr<fabric::Thread>> others;
  for (size_t t = 1; t < threads && !stopped(); ++t) {
    ++working;
    auto started = fabric_.TryStartThread(absl::StrFormat("nam-stage-%d", t), [this, &work, &end, t] {
      Note(work(t));
      end();
    });
    if (!started.ok()) {
      Note(started.status());
      end();
      continue;
    }
    others.push_back(*std::move(started));
    ++started_;
  }
  if (!stopped()) Note(work(0));
  end();
  // The others hear of a cancelled query from here alone.
  while (!ended->Wait(fabric_.clock().After(kGateCheckUsMax))) {
    if (contexts_[0].cancelled()) Note(QueryCancelled());
  }
}

absl::StatusOr<Step> ThreadTeam::Run(size_t thread, PipelineTask& task) {
  TaskContext& context = contexts_[thread];
  Step step;
  while ((step = task.Run(context)) == Step::kBlocked)
    NAM_RETURN_IF_ERROR(AwaitGate(fabric_, context, *context.gate(), stop_));
  if (step == Step::kFailed) return context.error();
  return step;
}

std::unique_ptr<SourceTask> ThreadTeam::Guarded(std::unique_ptr<SourceTask> source) const {
  return std::make_unique<GuardedSource>(std::move(source), stop_);
}

void ThreadTeam::Note(const absl::Status& status) {
  if (status.ok()) return;
  const MutexLock lock(mutex_);
  // Later cancellations follow from the first failure.
  if (first_error_.ok()) first_error_ = status;
  stop_ = true;
}

}  // namespace nam::execution
