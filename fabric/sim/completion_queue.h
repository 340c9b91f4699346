#pragma once

#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "fabric/fabric.h"
#include "fabric/sim/scheduler.h"

namespace nam::fabric::sim {

/// A producer of completions: one end of a reliable or a datagram queue pair.
class CompletionSource {
 public:
  /// The application has taken a completion; `places` of the work queue are free again.
  virtual void GiveBack(Opcode opcode, uint32_t places) = 0;

 protected:
  ~CompletionSource() = default;
};

class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(Scheduler& scheduler, int64_t poll_ns, uint64_t id, uint32_t depth);
  ~SimCompletionQueue() override;

  size_t Poll(std::span<Completion> completions) override;
  size_t Wait(std::span<Completion> completions, Deadline deadline) override;
  void Wake() override;

  absl::Status CheckRoom(uint64_t depth) const;
  void Attach(uint64_t depth) { reserved_ += depth; }
  /// Discards the source's completions.
  void Detach(const CompletionSource* source, uint64_t depth);
  void Push(const Completion& completion, CompletionSource* source, uint32_t places);

 private:
  struct Ready {
    Completion completion;
    CompletionSource* source;
    uint32_t places;
  };
  size_t Take(std::span<Completion> completions);

  Scheduler& scheduler_;
  const int64_t poll_ns_;
  const uint64_t id_;  // in reports
  const uint64_t depth_;
  uint64_t reserved_ = 0;
  std::deque<Ready> ready_;  // at most reserved_
  bool woken_ = false;
  WaitList waiters_;
};

}  // namespace nam::fabric::sim
