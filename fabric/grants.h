#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"

/// What memory servers have given this process to change, and how it says that it has done with it.
///
/// A region has one key, so a key does not protect memory that was freed from a request that is still on its
/// way. A memory server hands freed memory out again only when each member that had opened it has closed it,
/// or is fenced:
///
///     open ── the catalog: its allocation is over ─▶ over ── no request under way ─▶ closed ─▶ the servers
///     hear
///              from here on no request of this process begins there
///
/// Requests are under way while a Grant::Use of it lives (loads, scratch memory, claims), or in the section
/// of a Gate that began before it was over (transactions).
namespace nam::fabric {

/// The memory of one allocation, or what one attempt has of it. Thread-safe.
class Grant {
 public:
  Grant(AllocationId allocation, uint64_t attempt) : allocation_(allocation), attempt_(attempt) {}
  AllocationId allocation() const { return allocation_; }
  uint64_t attempt() const { return attempt_; }
  /// No request may begin there any more.
  bool over() const { return over_.load(std::memory_order_seq_cst); }

  /// As long as one lives, requests of its owner may be under way there.
  class Use {
   public:
    Use() = default;
    /// Nothing, if the grant is over.
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

/// The sections in which requests of one channel are under way. A section covers the look at the grant and
/// the completion of every request that relies on it.
///
///     idle ── Enter ─▶ inside ── Leave ─▶ idle
///                        └─ Park ─▶ parked ── Enter ─▶ inside, the same section
///                                     └─ Settle: taken ─▶ idle, or parked
///
/// The owner calls the first three, on one thread at a time. Any thread may look and settle.
class Gate {
 public:
  explicit Gate(Clock& clock) : clock_(clock) {}

  bool inside() const { return inside_; }
  /// Nothing is under way; the owner's to ask.
  bool idle() const { return Look() % kStates == kIdle; }
  void Enter();
  /// Nothing is under way.
  void Leave();
  /// The owner goes away, and requests are under way. Until it enters again another thread may call `settle`,
  /// which does not wait, and says whether they have completed, or cannot take effect any more.
  void Park(std::function<bool()> settle);

  /// While one lives nobody settles what is parked: the owner changes what a settling thread uses.
  class Pause {
   public:
    explicit Pause(Gate& gate);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Gate& gate_;
    uint64_t before_ =
        0;  // the word; kTaken instead of it if the gate was entered, and nothing is to be done
  };

  /// What the gate shows now.
  uint64_t Look() const { return word_.load(std::memory_order_seq_cst); }
  /// Nothing is under way of the section that `looked` was in.
  bool Passed(uint64_t looked) const;
  /// Settles what is parked, if it can be.
  void Settle();

 private:
  enum State : uint64_t { kIdle, kInside, kParked, kTaken, kStates };

  Clock& clock_;
  std::atomic<uint64_t> word_{0};  // the section's number times kStates, plus the state
  bool inside_ = false;            // the owner's
  std::function<bool()> settle_;   // of who has the state kInside or kTaken
};

/// A channel's connections that nobody uses any more, and over which requests may be under way.
class Unconfirmed {
 public:
  virtual ~Unconfirmed() = default;
  /// Memory servers have seen the end of the connections. Does not wait.
  virtual bool Confirmed() = 0;
};

/// All of a process. Thread-safe; Close is called by one thread at a time.
class Grants {
 public:
  struct Closed {
    std::shared_ptr<Grant> grant;
    std::vector<MemoryServerId> servers;
  };

  /// Before the server is asked: it may have given what the process then does not hear of. Over from the
  /// beginning, if the allocation is known to be over.
  std::shared_ptr<Grant> Open(AllocationId allocation, uint64_t attempt, MemoryServerId server);
  /// The server has opened it. False: it is over, or not this member's any more; what the server then took
  /// down for the process is to be closed, too.
  bool Confirm(const Grant& grant, MemoryServerId server);
  /// Nothing, unless the server has opened the allocation.
  std::shared_ptr<Grant> Find(AllocationId allocation, MemoryServerId server) const;
  /// Allocations of which something is open, for the catalog to say which of them are over.
  std::vector<AllocationId> Allocations() const;

  /// They are over. True: something is to be closed.
  bool End(std::span<const AllocationId> allocations);
  /// So is what the attempt has.
  void EndAttempt(AllocationId allocation, uint64_t attempt);
  /// The process is another member from now on. Memory servers know of its former one that it is over.
  void EndAll();

  /// What is over, and has no request under way. It stays until Forget.
  std::vector<Closed> Close();
  /// The server has heard that it is closed.
  void Forget(const Grant& grant, MemoryServerId server);
  /// Whether something is over, and not forgotten.
  bool closing() const;

  std::shared_ptr<Gate> MakeGate(Clock& clock);
  void Leave(std::unique_ptr<Unconfirmed> connections);
  /// The process ends, and its membership with it: memory servers end its connections.
  void DropConnections();

 private:
  using Key = std::pair<AllocationId, uint64_t>;
  using Looked = std::vector<std::pair<std::shared_ptr<Gate>, uint64_t>>;
  struct Entry {
    std::shared_ptr<Grant> grant;
    std::set<MemoryServerId> servers;    // to be told of the end
    std::set<MemoryServerId> confirmed;  // of them
    std::optional<Looked> looked;  // gates that were in a section when it was over, and have not left it yet
  };
  /// With mutex_ held.
  std::vector<std::shared_ptr<Gate>> Gates() const;
  void ConfirmEnds();

  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::vector<std::weak_ptr<Gate>> gates_;  // with those of channels that are gone, up to gates_max_
  size_t gates_max_ = 0;
  std::vector<std::unique_ptr<Unconfirmed>> unconfirmed_;
};

}  // namespace nam::fabric
