#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "fabric/completion_ring.h"
#include "fabric/fabric.h"
#include "fabric/sim/scheduler.h"

namespace nam::fabric::sim {

class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(Scheduler& scheduler, int64_t poll_ns, uint64_t id, uint32_t depth);
  ~SimCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  absl::Status CheckRoom(uint64_t places) const { return ready_.CheckRoom(places); }
  void Attach(uint64_t places);
  /// Discards the queue pair's completions.
  void Detach(uint64_t queue_pair, uint64_t places);
  /// When the completion is taken, `places` are subtracted from the queue pair's `used`.
  void Push(const Completion& completion, uint32_t* used, uint32_t places);

 private:
  Scheduler& scheduler_;
  const int64_t poll_ns_;
  const uint64_t id_;  // in reports
  CompletionRing ready_;
  size_t queue_pairs_ = 0;
  bool woken_ = false;
  WaitList waiters_;
};

}  // namespace nam::fabric::sim
