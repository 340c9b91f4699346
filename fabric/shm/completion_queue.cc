#include "fabric/shm/completion_queue.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "fabric/shm/datagram_queue_pair.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/doorbell_allocator.h"
#include "fabric/shm/queue_pair.h"

namespace nam::fabric::shm {

uint64_t NextQueuePairId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

ShmCompletionQueue::ShmCompletionQueue(uint32_t depth, DoorbellAllocator* doorbells, uint32_t bell_index)
    : depth_(depth),
      doorbells_(doorbells),
      bell_index_(bell_index),
      bell_(doorbells->at(bell_index)),
      bell_seen_(bell_.sequence.load(std::memory_order_acquire)),
      ready_(size_t{depth} + 1) {}

ShmCompletionQueue::~ShmCompletionQueue() {
  NAM_CHECK(queue_pairs_.empty() && datagrams_.empty(),
            "a completion queue is destroyed after its queue pairs");
  doorbells_->Return(bell_index_);
}

absl::Status ShmCompletionQueue::CheckRoom(uint32_t send_depth, uint32_t receive_depth) const {
  const uint64_t wanted = uint64_t{send_depth} + receive_depth;
  if (wanted <= depth_ - attached_depth_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the completion queue of depth %d has %d left, the queue pair needs %d (send_depth + "
                      "receive_depth); create "
                      "a deeper completion queue",
                      depth_, depth_ - attached_depth_, wanted));
}

void ShmCompletionQueue::Attach(ShmQueuePair* queue_pair, const QueuePairOptions& options) {
  attached_depth_ += options.send_depth + options.receive_depth;
  queue_pairs_.push_back(queue_pair);
}

void ShmCompletionQueue::Detach(ShmQueuePair* queue_pair, const QueuePairOptions& options) {
  attached_depth_ -= options.send_depth + options.receive_depth;
  std::erase(queue_pairs_, queue_pair);
  ForgetCompletions(queue_pair->id());
}

void ShmCompletionQueue::Attach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options) {
  attached_depth_ += options.send_depth + options.receive_depth;
  datagrams_.push_back(queue_pair);
}

void ShmCompletionQueue::Detach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options) {
  attached_depth_ -= options.send_depth + options.receive_depth;
  std::erase(datagrams_, queue_pair);
  ForgetCompletions(queue_pair->id());
}

void ShmCompletionQueue::ForgetCompletions(uint64_t queue_pair) {
  size_t kept = head_;
  for (size_t i = head_; i != tail_; i = i + 1 == ready_.size() ? 0 : i + 1) {
    if (ready_[i].completion.queue_pair == queue_pair) continue;
    ready_[kept] = ready_[i];
    kept = kept + 1 == ready_.size() ? 0 : kept + 1;
  }
  tail_ = kept;
}

size_t ShmCompletionQueue::Poll(std::span<Completion> completions) {
  // Every change by a peer or the service thread rings this bell.
  const uint32_t sequence = bell_.sequence.load(std::memory_order_acquire);
  if (sequence != bell_seen_) {
    bell_seen_ = sequence;
    for (ShmQueuePair* queue_pair : queue_pairs_) queue_pair->Progress();
    for (ShmDatagramQueuePair* queue_pair : datagrams_) queue_pair->Progress();
  }
  size_t taken = 0;
  while (taken < completions.size() && head_ != tail_) {
    const Ready& ready = ready_[head_];
    completions[taken++] = ready.completion;
    *ready.used -= ready.slots;
    head_ = head_ + 1 == ready_.size() ? 0 : head_ + 1;
  }
  return taken;
}

size_t ShmCompletionQueue::Wait(std::span<Completion> completions, Deadline deadline) {
  while (true) {
    if (const size_t taken = Poll(completions); taken > 0 || completions.empty()) return taken;
    if (woken_.exchange(false, std::memory_order_acq_rel)) return 0;
    if (RealClock().Passed(deadline)) return 0;
    AwaitRing(bell_, bell_seen_, deadline);
  }
}

void ShmCompletionQueue::Wake() {
  woken_.store(true, std::memory_order_release);
  Ring(bell_);
}

}  // namespace nam::fabric::shm
