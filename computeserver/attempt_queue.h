#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "catalog/control_plane.h"
#include "execution/memory_budget.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Queues the attempts of all sessions at one server: so many run, as memory allows, others wait in order of
/// arrival, and are refused only if the queue is full.
///
///     call ── Begin ─▶ waits ─▶ turn (until the call ends) and place (until the attempt ends)
///     call ── Resume ▶ waits ─▶ turn
///
/// Every caller gets its turn, or an error, for these reasons:
///  - An attempt with a turn waits for no other attempt, so turns end. An attempt with memory takes more only
///    if there is some at that moment, so memory comes back, too.
///  - Later attempts pass one that lacks memory while earlier ones hold what it lacks: it could not begin in
///    any case, and small queries do not wait for large ones that run for long. Once those have ended, no
///    attempt passes it any more. So it waits for the attempts of that moment, and never for later arrivals.
///  - Attempts whose results leave in windows stand still while their clients read, and keep their place.
///    Others pass an attempt that lacks one of these places; `relieve` may end one that stood still too long.
///  - An attempt that resumes comes before all that have not begun, for it holds what they wait for. It
///    is not refused. But after as many resumed attempts as may run at a time, an attempt that can begin has
///    its turn: otherwise clients that keep reading would hold all turns.
///
/// Thread-safe.
class AttemptQueue {
 public:
  struct Limits {
    size_t running_max = 1;
    size_t waiting_max = 0;  // that have not begun
    size_t open_max = 1;     // whose results leave in windows
    uint64_t memory_bytes = 0;
  };
  struct Needs {
    uint64_t memory_bytes = 0;  // at its beginning; at most all of the server's
    bool windows = false;       // its result leaves in windows
  };

  /// A turn to run; gives it back when destroyed. The queue outlives it.
  class Turn {
   public:
    explicit Turn(AttemptQueue& queue) : queue_(&queue) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (queue_ != nullptr) queue_->EndTurn();
    }

   private:
    AttemptQueue* queue_;
  };

  /// An attempt's share of the server from its first call to its end. The queue outlives it.
  class Place {
   public:
    /// `needs.memory_bytes` have been taken; `number` is the caller's.
    Place(AttemptQueue& queue, const Needs& needs, uint64_t number)
        : queue_(queue),
          windows_(needs.windows),
          number_(number),
          memory_(std::in_place, queue.memory_, needs.memory_bytes) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      memory_->Release(kept_bytes_);
      queue_.Leave(*this);
    }
    execution::MemoryGrant& memory() { return *memory_; }
    /// Takes memory until the place ends. Called before others use the place. False: less is left.
    [[nodiscard]] bool Keep(uint64_t bytes) {
      if (!memory_->Reserve(bytes)) return false;
      kept_bytes_ += bytes;
      return true;
    }

   private:
    friend class AttemptQueue;
    AttemptQueue& queue_;
    const bool windows_;
    const uint64_t number_;
    std::optional<execution::MemoryGrant> memory_;
    uint64_t kept_bytes_ = 0;
  };
  struct Beginning {
    Turn turn;
    std::shared_ptr<Place> place;
  };

  AttemptQueue(fabric::Fabric& fabric, const Limits& limits)
      : fabric_(fabric), limits_(limits), memory_(limits.memory_bytes) {}

  /// Waits for turn and place. Calls `relieve` again and again while this call is the first in line and waits
  /// not for a turn but for what attempts hold. 53300: too many wait already; CANCELLED: the caller has given
  /// up.
  absl::StatusOr<Beginning> Begin(const catalog::IncomingCall& call, const Needs& needs,
                                  const std::function<void()>& relieve);
  /// Waits for a turn. CANCELLED: the caller has given up.
  absl::StatusOr<Turn> Resume(const catalog::IncomingCall& call);

  size_t waiting() {
    const MutexLock lock(mutex_);
    return waiting_.size() + resumed_.size();
  }
  /// Whether none runs or waits.
  bool empty() {
    const MutexLock lock(mutex_);
    return running_ == 0 && waiting_.empty() && resumed_.empty();
  }
  const execution::ServerMemory& memory() const { return memory_; }

 private:
  struct Waiter {
    Needs needs;
    uint64_t number = 0;  // counts those that have not begun, in order of arrival
    bool admitted = false;
    std::shared_ptr<Place> place;         // then, for those that had not begun
    std::unique_ptr<fabric::Event> turn;  // once it has to wait
  };
  using Waiters = std::deque<Waiter*>;  // owned by the waiting threads

  /// Gives turns to waiters that may run.
  void Serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Gives a turn to the first that can begin; false: none can.
  bool ServeWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether it could not begin even if all later arrivals ended.
  bool LacksWhatEarlierOnesHold(const Waiter& waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Admit(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// False: its turn has come.
  bool GiveUp(const Waiter& waiter);
  absl::Status AwaitTurn(const catalog::IncomingCall& call, Waiter& waiter,
                         const std::function<void()>& relieve);
  /// Whether it is the first, and lacks something other than a turn.
  bool HeldUp(const Waiter& waiter);
  void EndTurn();
  void Leave(Place& place);

  fabric::Fabric& fabric_;
  const Limits limits_;
  execution::ServerMemory memory_;
  Mutex mutex_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t came_ ABSL_GUARDED_BY(mutex_) = 0;              // callers that had not begun
  std::set<const Place*> places_ ABSL_GUARDED_BY(mutex_);  // attempts that have begun, and not ended
  size_t resumed_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  Waiters resumed_ ABSL_GUARDED_BY(mutex_);
  Waiters waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::computeserver
