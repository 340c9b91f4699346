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
class ShmDatagramQueuePair;
class ShmQueuePair;

/// Unique among all fabrics of the process.
uint64_t NextQueuePairId();

/// Keeps completions in a ring of `depth`. The ring cannot overflow: a work request holds its place in its
/// queue pair until its completion is taken, and the sum of the attached queue pairs' depths fits.
class ShmCompletionQueue final : public CompletionQueue {
 public:
  ShmCompletionQueue(uint32_t depth, DoorbellAllocator* doorbells, uint32_t bell_index);
  ~ShmCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  // -- For queue pairs --
  /// RESOURCE_EXHAUSTED if the depths do not fit.
  absl::Status CheckRoom(uint32_t send_depth, uint32_t receive_depth) const;
  void Attach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  /// Discards the queue pair's completions.
  void Detach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  void Attach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options);
  void Detach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options);
  /// When the completion is taken, `slots` are subtracted from the queue pair's `used`.
  void Push(const Completion& completion, uint32_t* used, uint32_t slots) {
    Ready& ready = ready_[tail_];
    ready = {completion, used, slots};
    tail_ = tail_ + 1 == ready_.size() ? 0 : tail_ + 1;
  }
  Doorbell& bell() { return bell_; }
  uint32_t bell_index() const { return bell_index_; }

 private:
  struct Ready {
    Completion completion;
    uint32_t* used = nullptr;
    uint32_t slots = 0;
  };
  void ForgetCompletions(uint64_t queue_pair);

  const uint32_t depth_;
  uint32_t attached_depth_ = 0;
  DoorbellAllocator* const doorbells_;
  const uint32_t bell_index_;
  Doorbell& bell_;
  uint32_t bell_seen_ = 0;
  std::atomic<bool> woken_{false};
  std::vector<ShmQueuePair*> queue_pairs_;
  std::vector<ShmDatagramQueuePair*> datagrams_;
  std::vector<Ready> ready_;  // one more than `depth`, to tell full from empty
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace nam::fabric::shm
