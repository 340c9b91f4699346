#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/strong_id.h"

/// Tracks the memory that this process may change in memory servers, and tells the servers when the process
/// is done with it.
///
/// A region has one key, so a key does not protect freed memory from a request in flight. A memory server
/// reuses freed memory only when each member that opened it has closed it or is fenced:
///
///     open ── catalog: the allocation is over ─▶ over ── no request in flight ─▶ closed ─▶ servers are told
///              from here on this process begins no request there
///
/// A server may still work on a request to open memory after this process has given up on it and has reported
/// the memory as closed. Requests to open memory are therefore numbered. Each report of closed memory carries
/// the lowest number under way, and the server refuses lower numbers from then on:
///
///     process                                server
///       │ Opening 5 ── AllocateRequest 5 ──────▶│ takes long
///       │ gives up; the attempt is over         │
///       │ closed, openings from 6 ─────────────▶│ closes what 5 has opened so far: nothing
///       │ forgets the grant                     │ 5 < 6: opens nothing
///
/// Requests are in flight while a Grant::Use of the memory lives (loads, scratch memory, claims), or in the
/// section of a Gate that began before the allocation was over (transactions).
namespace nam::fabric {

/// The memory of one allocation, or of one attempt within it. Thread-safe.
class Grant {
 public:
  Grant(AllocationId allocation, uint64_t attempt) : allocation_(allocation), attempt_(attempt) {}
  AllocationId allocation() const { return allocation_; }
  uint64_t attempt() const { return attempt_; }
  /// True once no request may begin there.
  bool over() const { return over_.load(std::memory_order_seq_cst); }

  /// Keeps the grant in use: its owner may have requests in flight while it lives.
  class Use {
   public:
    Use() = default;
    /// Empty if the grant is over.
    static std::optional<Use> Of(std::shared_ptr<Grant> grant);
    Use(Use&& other) noexcept : grant_(std::move(other.grant_)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(grant_, other.grant_);
      return *this;
    }
    ~Use();

   private:
    explicit Use(std::shared_ptr<Grant> grant) : grant_(std::move(grant)) {}
    std::shared_ptr<Grant> grant_;
  };

 private:
  friend class Grants;
  const AllocationId allocation_;
  const uint64_t attempt_;
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> uses_{0};
};

/// The sections during which one channel has requests in flight. A section spans from the check of the grant
/// to the completion of the last request that relies on it.
///
///     idle ── Enter ─▶ inside ── Leave ─▶ idle
///                        └─ Park ─▶ parked ── Enter ─▶ inside, the same section
///                                     └─ TryDrain: taken ─▶ idle, or parked
///
/// The owner calls the first three, on one thread at a time. Any thread may look and drain.
class Gate {
 public:
  explicit Gate(Clock& clock);

  bool inside() const { return inside_; }
  /// True if Enter leaves its memory barrier to the thread that looks (base/process_barriers.h).
  bool needs_barriers() const { return needs_barriers_; }
  /// True if no request is in flight. Owner only.
  bool idle() const { return Look() % kStates == kIdle; }
  void Enter() {
    if (!inside_) Begin();
  }
  /// Requires that no request is in flight.
  void Leave();
  /// The owner leaves with requests in flight. Until it enters again, another thread may call `drain`, which
  /// does not wait and returns whether the requests have completed or can no longer take effect.
  void Park(std::function<bool()> drain);

  /// Prevents draining while it lives: the owner changes what a draining thread uses.
  class Pause {
   public:
    explicit Pause(Gate& gate);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Gate& gate_;
    uint64_t before_ = 0;  // the word to restore; 0: the gate was entered, so there is nothing to restore
  };

  /// The current word.
  uint64_t Look() const { return word_.load(std::memory_order_seq_cst); }
  /// True if no request of the section in `looked` is in flight.
  bool Passed(uint64_t looked) const;
  /// Ends the parked section if its requests have completed.
  void TryDrain();

 private:
  enum State : uint64_t { kIdle, kInside, kParked, kTaken, kStates };
  void Begin();
  void SetInside(uint64_t section);

  Clock& clock_;
  const bool needs_barriers_;
  std::atomic<uint64_t> word_{0};  // the section's number times kStates, plus the state
  bool inside_ = false;            // the owner's
  std::function<bool()> drain_;    // belongs to the thread that holds kInside or kTaken
};

/// Connections that a channel abandoned with requests possibly in flight.
class Unconfirmed {
 public:
  virtual ~Unconfirmed() = default;
  /// True once memory servers have seen the end of the connections. Does not wait.
  virtual bool Confirmed() = 0;
};

/// All grants of a process. Thread-safe; one thread at a time calls Close.
class Grants {
 public:
  /// A closed grant, and a server that must be told so.
  struct Closed {
    std::shared_ptr<Grant> grant;
    MemoryServerId server;
    uint64_t opening;        // the last one
    uint64_t openings_from;  // lower ones at this server are not under way any more
  };

  /// A request to one server to open memory. Lives from before the call until the process has the answer or
  /// stops waiting for it. One thread at a time.
  class Opening {
   public:
    Opening(Grants& grants, MemoryServerId server);
    /// Ends the opening. Whatever the server has answered, it may still open the added grants, so they are
    /// not forgotten before the server has been told that the opening is over.
    ~Opening();
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

    uint64_t number() const { return number_; }
    /// The grant is over from the start if the allocation is known to be over.
    std::shared_ptr<Grant> Add(AllocationId allocation, uint64_t attempt);
    /// The server has opened it. False: the grant is over or belongs to a former member of this process; the
    /// caller must not use it.
    bool Confirm(const Grant& grant);

   private:
    Grants& grants_;
    const MemoryServerId server_;
    const uint64_t number_;
    std::vector<std::pair<AllocationId, uint64_t>> added_;
  };

  /// Null unless the server has opened the allocation.
  std::shared_ptr<Grant> Find(AllocationId allocation, MemoryServerId server) const;
  /// Allocations with open grants; the catalog says which of them are over.
  std::vector<AllocationId> Allocations() const;

  /// The allocations are over. True: some grant must be closed.
  bool End(std::span<const AllocationId> allocations);
  /// The attempt's grants are over.
  void EndAttempt(AllocationId allocation, uint64_t attempt);
  /// The process has become another member. Memory servers know that the former member is over.
  void EndAll();

  /// The grants that are over and have no request in flight, once for each server. They stay until Forget.
  std::vector<Closed> Close();
  /// The server has been told that the grant is closed. If an opening of it was under way or has begun since,
  /// the server may open the grant after it was told: once that opening is over, Close names the grant again.
  void Forget(const Closed& told);
  /// True if some grant is over and not forgotten.
  bool closing() const;

  std::shared_ptr<Gate> MakeGate(Clock& clock);
  void Leave(std::unique_ptr<Unconfirmed> connections);
  /// Drops the abandoned connections. The membership ends with the process, so memory servers end them.
  void DropConnections();

 private:
  using Key = std::pair<AllocationId, uint64_t>;
  using Looked = std::vector<std::pair<std::shared_ptr<Gate>, uint64_t>>;
  struct Opened {
    uint64_t last = 0;  // opening
    bool told = false;  // that it is closed, while the last opening was under way
  };
  struct Entry {
    std::shared_ptr<Grant> grant;
    std::map<MemoryServerId, Opened> opened;  // the servers to be told of the end
    std::set<MemoryServerId> confirmed;       // have confirmed the grant
    std::optional<Looked> looked;             // gates inside a section when the grant ended, and still in it
  };
  /// Makes the entry if there is none, as for another member's memory.
  Entry& EntryOf(AllocationId allocation, uint64_t attempt, MemoryServerId server, uint64_t opening)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t OpeningsFrom(MemoryServerId server) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Gate>> Gates() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool PassBarriers(const std::vector<std::shared_ptr<Gate>>& gates);
  void ConfirmEnds();

  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_opening_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<MemoryServerId, uint64_t>> openings_ ABSL_GUARDED_BY(mutex_);  // under way
  // Includes gates of destroyed channels, up to gates_max_.
  std::vector<std::weak_ptr<Gate>> gates_ ABSL_GUARDED_BY(mutex_);
  size_t gates_max_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Unconfirmed>> unconfirmed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric
