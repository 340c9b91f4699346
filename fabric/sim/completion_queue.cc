#include "fabric/sim/completion_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::fabric::sim {

namespace {

/// The lead over the world that a thread that finds completions may have.
constexpr int64_t kAheadNs = 1'000;

}  // namespace

SimCompletionQueue::SimCompletionQueue(Scheduler& scheduler, int64_t poll_ns, uint64_t id, uint32_t depth)
    : scheduler_(scheduler), poll_ns_(poll_ns), id_(id), depth_(depth) {}

SimCompletionQueue::~SimCompletionQueue() {
  NAM_CHECK(reserved_ == 0, "queue pairs go before their queue");
}

absl::Status SimCompletionQueue::CheckRoom(uint64_t depth) const {
  if (depth <= depth_ - reserved_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the completion queue of depth %d has room for %d more work requests, and the queue "
                      "pair needs %d (send_depth + receive_depth): create the one deeper, or the other "
                      "shallower",
                      depth_, depth_ - reserved_, depth));
}

void SimCompletionQueue::Detach(const CompletionSource* source, uint64_t depth) {
  reserved_ -= depth;
  std::erase_if(ready_, [source](const Ready& ready) { return ready.source == source; });
}

void SimCompletionQueue::Push(const Completion& completion, CompletionSource* source, uint32_t places) {
  ready_.push_back({completion, source, places});
  scheduler_.Notify(waiters_);
}

size_t SimCompletionQueue::Take(std::span<Completion> completions) {
  size_t taken = 0;
  for (; taken < completions.size() && !ready_.empty(); ++taken) {
    const Ready ready = ready_.front();
    ready_.pop_front();
    completions[taken] = ready.completion;
    ready.source->GiveBack(ready.completion.opcode, ready.places);
  }
  return taken;
}

size_t SimCompletionQueue::Poll(std::span<Completion> completions) {
  scheduler_.Charge(poll_ns_);
  scheduler_.Settle();
  return Take(completions);
}

size_t SimCompletionQueue::Wait(std::span<Completion> completions, Deadline deadline) {
  // A completion present in the world's time is present in the thread's: others need not run first.
  scheduler_.SettleBeyond(kAheadNs);
  while (ready_.empty() && !woken_ && !completions.empty() && scheduler_.NowNs() < deadline.ns) {
    scheduler_.Wait({&waiters_}, {"completion queue", id_}, deadline);
  }
  if (ready_.empty()) {
    scheduler_.Charge(poll_ns_);
    scheduler_.Settle();
    if (ready_.empty()) woken_ = false;
  } else {
    scheduler_.Charge(poll_ns_);
  }
  return Take(completions);
}

void SimCompletionQueue::Wake() {
  woken_ = true;
  scheduler_.Notify(waiters_);
}

}  // namespace nam::fabric::sim
