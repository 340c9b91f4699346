#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "catalog/control_plane.h"
#include "execution/memory_budget.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Attempts of all sessions at one server: so many run, with what there is of memory, others wait in the
/// order in which they came, and only where that queue ends they are refused.
///
///     call ── Begin ─▶ waits ─▶ turn (until the call ends) and place (until the attempt ends)
///     call ── Resume ▶ waits ─▶ turn
///
/// Why everybody gets his turn, or is told:
///  - Who has a turn waits for no other attempt, so turns end; and who has memory takes more only if there is
///    some at that moment. So memory comes back, too.
///  - An attempt that lacks memory is passed by later ones as long as earlier ones hold what it lacks: it
///    could not begin in any case, and small queries do not wait for large ones that run for long. Once those
///    have ended it is passed no more. So it waits for the attempts of that moment, and never for those that
///    keep coming.
///  - Attempts whose results leave in windows stand still while their clients read, and keep their place. Who
///    lacks one of these places is passed by others; `relieve` may end what has stood still for too long.
///  - Who resumes what has begun comes before all who have not, for it holds what they wait for. It is not
///    refused. But as many as run at a time are followed by one that can begin, or clients who always read on
///    would keep all turns.
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
    uint64_t memory_bytes = 0;  // at its beginning; all of the server's at most
    bool windows = false;       // its result leaves in windows
  };

  /// A turn; ends with it. The queue outlives it.
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

  /// What an attempt has of the server from its first call to its end. The queue outlives it.
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
      memory_->Give(kept_bytes_);
      queue_.Leave(*this);
    }
    execution::MemoryGrant& memory() { return *memory_; }
    /// Takes memory that nobody gives back before the place ends. Before others have the place. False: there
    /// is not so much.
    [[nodiscard]] bool Keep(uint64_t bytes) {
      if (!memory_->Take(bytes)) return false;
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

  /// Waits. While it is the first that waits, and not for a turn but for what attempts hold, `relieve` is
  /// called again and again. 53300: too many wait already; CANCELLED: the caller has given up.
  absl::StatusOr<Beginning> Begin(const catalog::IncomingCall& call, const Needs& needs,
                                  const std::function<void()>& relieve);
  /// Waits. CANCELLED: the caller has given up.
  absl::StatusOr<Turn> Resume(const catalog::IncomingCall& call);

  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size() + resumed_.size();
  }
  /// Whether none runs or waits.
  bool empty() {
    const std::lock_guard lock(mutex_);
    return running_ == 0 && waiting_.empty() && resumed_.empty();
  }
  const execution::ServerMemory& memory() const { return memory_; }

 private:
  struct Waiter {
    Needs needs;
    uint64_t number = 0;  // counts those that have not begun, as they come
    bool admitted = false;
    std::shared_ptr<Place> place;         // then, of those that had not begun
    std::unique_ptr<fabric::Event> turn;  // once it is known that it has to wait
  };
  using Waiters = std::deque<Waiter*>;  // of the threads that wait

  /// Gives turns to those whose turn it is. With `mutex_`.
  void Serve();
  /// A turn to the first that can begin; false: none can.
  bool ServeWaiting();
  /// Whether it could not begin if all that came later ended.
  bool LacksWhatEarlierOnesHold(const Waiter& waiter) const;
  void Admit(Waiter& waiter);
  /// False: its turn has come.
  bool GiveUp(Waiters& waiters, const Waiter& waiter);
  absl::Status AwaitTurn(const catalog::IncomingCall& call, Waiters& waiters, Waiter& waiter,
                         const std::function<void()>& relieve);
  /// Whether it is the first, and a turn is not what it lacks.
  bool HeldUp(const Waiter& waiter);
  void EndTurn();
  void Leave(Place& place);

  fabric::Fabric& fabric_;
  const Limits limits_;
  execution::ServerMemory memory_;
  std::mutex mutex_;  // guards what follows
  size_t running_ = 0;
  size_t open_ = 0;
  uint64_t came_ = 0;              // callers that had not begun
  std::set<const Place*> places_;  // attempts that have begun, and not ended
  size_t resumed_in_a_row_ = 0;
  Waiters resumed_;
  Waiters waiting_;
};

}  // namespace nam::computeserver
