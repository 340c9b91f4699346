#include "fabric/shm/completion_queue.h"

#include <vector>

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
    : doorbells_(doorbells),
      bell_index_(bell_index),
      bell_(doorbells->at(bell_index)),
      bell_seen_(bell_.sequence.load(std::memory_order_acquire)),
      ready_(depth) {}

ShmCompletionQueue::~ShmCompletionQueue() {
  NAM_CHECK(queue_pairs_.empty() && datagrams_.empty(),
            "a completion queue is destroyed after its queue pairs");
  doorbells_->Return(bell_index_);
}

void ShmCompletionQueue::Attach(ShmQueuePair* queue_pair, const QueuePairOptions& options) {
  ready_.Attach(PlacesOf(options));
  queue_pairs_.push_back(queue_pair);
}

void ShmCompletionQueue::Detach(ShmQueuePair* queue_pair, const QueuePairOptions& options) {
  std::erase(queue_pairs_, queue_pair);
  ready_.Detach(queue_pair->id(), PlacesOf(options));
}

void ShmCompletionQueue::Attach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options) {
  ready_.Attach(PlacesOf(options));
  datagrams_.push_back(queue_pair);
}

void ShmCompletionQueue::Detach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options) {
  std::erase(datagrams_, queue_pair);
  ready_.Detach(queue_pair->id(), PlacesOf(options));
}

size_t ShmCompletionQueue::Poll(std::span<Completion> completions) {
  // Every change by a peer or the service thread rings this bell.
  const uint32_t sequence = bell_.sequence.load(std::memory_order_acquire);
  if (sequence != bell_seen_) {
    bell_seen_ = sequence;
    for (ShmQueuePair* queue_pair : queue_pairs_) queue_pair->Progress();
    for (ShmDatagramQueuePair* queue_pair : datagrams_) queue_pair->Progress();
  }
  return ready_.Pop(completions);
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
