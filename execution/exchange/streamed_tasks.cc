#include "execution/exchange/streamed_tasks.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// Threads of the same server open gates, and have work until then.
constexpr int64_t kGateCheckUs = 100;

}  // namespace

absl::Status StreamedTasks::Run(
    const std::function<void(uint32_t pipeline, const PipelineTask& task)>& ended) {
  while (!running_.empty() || !unwanted_.empty()) {
    NAM_ASSIGN_OR_RETURN(const bool moved, RunEach(ended));
    if (!moved && !(running_.empty() && unwanted_.empty())) NAM_RETURN_IF_ERROR(Wait());
  }
  return absl::OkStatus();
}

absl::Status StreamedTasks::DropUnwanted() {
  for (const uint32_t exchange : unwanted_) {
    while (const auto message = endpoint_.GetData(exchange, exchange + 1)) {
      NAM_RETURN_IF_ERROR(endpoint_.Release(*message));
      context_.CountMessage();
    }
  }
  std::erase_if(unwanted_, [this](uint32_t exchange) { return endpoint_.Ended(exchange); });
  return absl::OkStatus();
}

absl::StatusOr<bool> StreamedTasks::RunEach(const std::function<void(uint32_t, const PipelineTask&)>& ended) {
  // One task may have taken completions that an already visited one waits for.
  const auto moves = [this] { return context_.messages() + endpoint_.completions(); };
  const uint64_t before = moves();
  gated_ = false;
  NAM_RETURN_IF_ERROR(DropUnwanted());
  for (size_t i = running_.size(); i-- > 0;) {
    Running& one = running_[i];
    const Step step = one.task->Run(context_);
    if (step == Step::kFailed) return context_.error();
    if (step == Step::kDone) {
      ended(one.pipeline, *one.task);
      if (one.received.has_value() && !endpoint_.Ended(*one.received)) unwanted_.push_back(*one.received);
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
    NAM_CHECK(step == Step::kBlocked || step == Step::kNeedInput, "a task goes on as long as it can");
    gated_ |= step == Step::kBlocked && context_.gate() != nullptr;
  }
  return moves() > before;
}

absl::Status StreamedTasks::Wait() {
  const int64_t since_ns = context_.clock().NowNs();
  if (gated_) {
    context_.clock().SleepUntil(context_.clock().After(kGateCheckUs));
    if (context_.cancelled()) return absl::CancelledError("the query was cancelled");
  }
  const absl::Status polled = endpoint_.Poll(/*wait=*/!gated_, context_.cancel());
  waited_ns_ += context_.clock().NowNs() - since_ns;
  return polled;
}

absl::Status AwaitIdle(Endpoint& endpoint, const std::atomic<bool>& cancel) {
  while (!endpoint.Idle()) NAM_RETURN_IF_ERROR(endpoint.Poll(/*wait=*/true, cancel));
  return absl::OkStatus();
}

}  // namespace nam::execution
