#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "fabric/completion_ring.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"

namespace nam::fabric::shm {

class DoorbellAllocator;
class ShmDatagramQueuePair;
class ShmQueuePair;

/// Unique among all fabrics of the process.
uint64_t NextQueuePairId();

/// Keeps completions in a ring. Polling moves what peers and the service thread have rung for.
class ShmCompletionQueue final : public CompletionQueue {
 public:
  ShmCompletionQueue(uint32_t depth, DoorbellAllocator* doorbells, uint32_t bell_index);
  ~ShmCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  // -- For queue pairs --
  absl::Status CheckRoom(uint64_t places) const { return ready_.CheckRoom(places); }
  void Attach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  /// Discards the queue pair's completions.
  void Detach(ShmQueuePair* queue_pair, const QueuePairOptions& options);
  void Attach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options);
  void Detach(ShmDatagramQueuePair* queue_pair, const DatagramOptions& options);
  /// When the completion is taken, `places` are subtracted from the queue pair's `used`.
  void Push(const Completion& completion, uint32_t* used, uint32_t places) {
    ready_.Push(completion, used, places);
  }
  Doorbell& bell() { return bell_; }
  uint32_t bell_index() const { return bell_index_; }

 private:
  DoorbellAllocator* const doorbells_;
  const uint32_t bell_index_;
  Doorbell& bell_;
  uint32_t bell_seen_ = 0;
  std::atomic<bool> woken_{false};
  std::vector<ShmQueuePair*> queue_pairs_;
  std::vector<ShmDatagramQueuePair*> datagrams_;
  CompletionRing ready_;
};

}  // namespace nam::fabric::shm
