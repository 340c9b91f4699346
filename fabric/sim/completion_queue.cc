#include "fabric/sim/completion_queue.h"

#include "base/check.h"

namespace nam::fabric::sim {

namespace {

/// The lead over the world that a thread that finds completions may have.
constexpr int64_t kAheadNs = 1'000;

}  // namespace

SimCompletionQueue::SimCompletionQueue(Scheduler& scheduler, int64_t poll_ns, uint64_t id, uint32_t depth)
    : scheduler_(scheduler), poll_ns_(poll_ns), id_(id), ready_(depth) {}

SimCompletionQueue::~SimCompletionQueue() {
  NAM_CHECK(queue_pairs_ == 0, "queue pairs go before their queue");
}

void SimCompletionQueue::Attach(uint64_t places) {
  ready_.Attach(places);
  ++queue_pairs_;
}

void SimCompletionQueue::Detach(uint64_t queue_pair, uint64_t places) {
  ready_.Detach(queue_pair, places);
  --queue_pairs_;
}

void SimCompletionQueue::Push(const Completion& completion, uint32_t* used, uint32_t places) {
  ready_.Push(completion, used, places);
  scheduler_.Notify(waiters_);
}

size_t SimCompletionQueue::Poll(std::span<Completion> completions) {
  scheduler_.Charge(poll_ns_);
  scheduler_.Sync();
  return ready_.Pop(completions);
}

size_t SimCompletionQueue::Wait(std::span<Completion> completions, Deadline deadline) {
  // A completion present in the world's time is present in the thread's: others need not run first.
  scheduler_.SyncBeyond(kAheadNs);
  while (ready_.empty() && !woken_ && !completions.empty() && scheduler_.NowNs() < deadline.ns) {
    scheduler_.Wait({&waiters_}, {"completion queue", id_}, deadline);
  }
  if (ready_.empty()) {
    scheduler_.Charge(poll_ns_);
    scheduler_.Sync();
    if (ready_.empty()) woken_ = false;
  } else {
    scheduler_.Charge(poll_ns_);
  }
  return ready_.Pop(completions);
}

void SimCompletionQueue::Wake() {
  woken_ = true;
  scheduler_.Notify(waiters_);
}

}  // namespace nam::fabric::sim
