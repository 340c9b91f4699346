#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Calls for attempts of all sessions at one server: so many run, others wait for their turn in the order in
/// which they came, and beyond that they are refused. Thread-safe.
class AttemptQueue {
 public:
  /// A turn; ends with it. The queue outlives it.
  class Turn {
   public:
    explicit Turn(AttemptQueue& queue) : queue_(&queue) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (queue_ != nullptr) queue_->End();
    }

   private:
    AttemptQueue* queue_;
  };

  AttemptQueue(fabric::Fabric& fabric, size_t running_max, size_t waiting_max)
      : fabric_(fabric), running_max_(running_max), waiting_max_(waiting_max) {}

  /// Whether a caller may be refused: one that goes on with what it has begun may not.
  enum class Kind : uint8_t { kNew, kResumed };
  /// Waits. RESOURCE_EXHAUSTED: too many wait already; CANCELLED: the caller has given up.
  absl::StatusOr<Turn> Begin(const catalog::IncomingCall& call, Kind kind = Kind::kNew);
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  /// Whether none runs or waits.
  bool empty() {
    const std::lock_guard lock(mutex_);
    return running_ == 0 && waiting_.empty();
  }

 private:
  struct Waiter {
    std::unique_ptr<fabric::Event> turn;
  };
  void End();
  /// False: its turn has come.
  bool GiveUp(const Waiter& waiter);

  fabric::Fabric& fabric_;
  const size_t running_max_, waiting_max_;
  std::mutex mutex_;
  size_t running_ = 0;
  std::deque<Waiter*> waiting_;  // of the threads that wait
};

}  // namespace nam::computeserver
