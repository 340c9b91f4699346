#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"

namespace nam::fabric::shm {

class DoorbellAllocator;
class ShmQueuePair;

/// Completions wait in a ring of `depth`, which cannot overflow: a work request holds its place in its
/// queue pair until its completion is taken, and the depths of the queue pairs attached fit.
class ShmCompletionQueue final : public CompletionQueue {
 public:
  ShmCompletionQueue(uint32_t depth, DoorbellAllocator* doorbells, uint32_t bell_index);
  ~ShmCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  // -- For queue pairs --
  /// RESOURCE_EXHAUSTED when its depths do not fit.
  absl::Status CheckRoom(const QueuePairOptions& options) const;
  void Attach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  /// Forgets its completions.
  void Detach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  /// Taking the completion gives `slots` back to the queue pair's send (or, for kReceive, receive) queue.
  void Push(ShmQueuePair* queue_pair, const Completion& completion, uint32_t slots) {
    Ready& ready = ready_[tail_];
    ready = {completion, queue_pair, slots};
    tail_ = tail_ + 1 == ready_.size() ? 0 : tail_ + 1;
  }
  Doorbell& bell() { return bell_; }
  uint32_t bell_index() const { return bell_index_; }

 private:
  struct Ready {
    Completion completion;
    ShmQueuePair* queue_pair = nullptr;
    uint32_t slots = 0;
  };

  const uint32_t depth_;
  uint32_t attached_depth_ = 0;
  DoorbellAllocator* const doorbells_;
  const uint32_t bell_index_;
  Doorbell& bell_;
  uint32_t bell_seen_ = 0;
  std::atomic<bool> woken_{false};
  std::vector<ShmQueuePair*> queue_pairs_;
  std::vector<Ready> ready_;  // one more than `depth`, so that full differs from empty
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace nam::fabric::shm
