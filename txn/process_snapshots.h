#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "storage/verb_batch.h"
#include "txn/client_slot.h"
#include "txn/extent_space.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// What the sessions of a process share of their snapshots.
///
///     floor   the word of a slot of the process's own (FloorWord): no snapshot that a session of the process
///             uses is below it, so others free nothing that one of them sees
///     fetch   where a round trip is worth it, one session READs the ring for all that have asked
///
///     session   Pin::AddEnter ─┬─ the floor is there: nothing ──────────────┬─▶ its READs ─▶ Entered ─▶
///     SetSnapshot
///                              └─ CAS of the floor, in front of its READs ──┘                 └ false: again
///               Pin::AddLeave ── the last that leaves: CAS of the floor to 0
///
/// A session says what it will not go below (Pin) before its READs, and a session that raises the floor looks
/// at all pins behind its READs. So either it sees the pin, or the other's snapshot is newer than its own.
///
/// Each change of the floor has a number of its own, and a CAS expects it: what comes late from a connection
/// that broke, or from a session that has left, changes nothing.
///
/// Thread-safe, but for a Pin, which is its session's. Owned by the pins.
class ProcessSnapshots : public std::enable_shared_from_this<ProcessSnapshots> {
 public:
  /// What a session keeps; also after it is lost, until its connections have ended (LostClient).
  class Pin {
   public:
    explicit Pin(std::shared_ptr<ProcessSnapshots> process) : process_(std::move(process)) {}
    ~Pin() { Abandon(); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    /// Whether the session's snapshot is protected: between AddEnter and AddLeave.
    bool entered() const { return entered_; }
    /// Adds what has to come before the READs of a snapshot.
    absl::Status AddEnter(storage::VerbBatch& batch, ExtentSpace& state);
    /// Behind the READs. False: nothing protects what they brought; AddEnter and READ again.
    bool Entered();
    /// What the session uses from now on, and what every snapshot that is taken later reaches.
    void SetSnapshot(uint64_t snapshot, uint64_t reached);
    absl::Status AddLeave(storage::VerbBatch& batch, ExtentSpace& state);
    ProcessSnapshots& process() const { return *process_; }

   private:
    friend class ProcessSnapshots;
    void Abandon();

    const std::shared_ptr<ProcessSnapshots> process_;
    bool counted_ = true;  // among the process's sessions
    bool entered_ = false;
    std::list<Pin*>::iterator place_;  // in pins_; while it is entered
    std::atomic<uint64_t> lower_{0};   // the session's snapshot is not below it
    const uint64_t* old_ = nullptr;    // scratch: of the CAS under way; null: there is none
    FloorWord expected_, next_;        // likewise
  };

  /// Those of each membership of a process.
  class Registry {
   public:
    /// The process's as this member, with a slot of its own. As ClientSlot::Claim.
    absl::StatusOr<std::unique_ptr<Pin>> Open(ExtentSpace& state, StateGeometry geometry,
                                              storage::VerbBatch& batch, MemberId member);

   private:
    std::mutex mutex_;
    std::map<MemberId, std::weak_ptr<ProcessSnapshots>> open_;
  };

  ProcessSnapshots(StateGeometry geometry, const ClientSlot& slot)
      : geometry_(geometry), slot_(slot), word_(slot.floor), generation_(slot.floor.generation()) {}

  /// Its slot's client.
  uint32_t client() const { return slot_.client; }
  /// Every snapshot that is taken from now on reaches it.
  uint64_t known() const { return known_.load(std::memory_order_acquire); }
  /// No session's snapshot is below it, as far as they have said; `most` if nobody has said anything.
  uint64_t Least(uint64_t most);
  /// Ends a session in order: if it is the last, the slot is given back.
  absl::Status Close(ExtentSpace& state, storage::VerbBatch& batch, std::unique_ptr<Pin> pin);

 private:
  uint64_t LeastLocked(uint64_t most) const;
  FloorWord Next(uint64_t floor) { return FloorWord(floor, ++generation_); }

  const StateGeometry geometry_;
  const ClientSlot slot_;
  std::atomic<uint64_t> known_{0};

  std::mutex mutex_;
  bool closed_ = false;     // its slot is given back
  size_t sessions_ = 0;     // pins that there are
  std::list<Pin*> pins_;    // that are entered
  FloorWord word_;          // as last seen, or as it becomes when the last session has left
  FloorWord leaving_;       // what it may be still, if that has not happened yet
  bool published_ = false;  // some session has seen that word_ is there
  uint16_t generation_;     // of the last change
};

}  // namespace nam::txn
