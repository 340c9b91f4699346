#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/member.h"

namespace nam::fabric {

/// A member's connection, as its passive listener stops it.
class ServedEnd {
 public:
  virtual ~ServedEnd() = default;
  /// Prevents new operations. True once none is in flight either. `kill` ends the process of a peer that
  /// stalls inside an operation. Any thread, repeatable.
  virtual bool Stop(bool kill) = 0;
  /// True if the peer is gone and no operation is in flight: the connection can be forgotten.
  virtual bool Over() { return false; }
};

/// The connections of one passive listener, by member. Thread-safe.
///
///     Register ─▶ asked about ── Serve ─▶ serving ── its place ends ─▶ forgotten
///                      └─ Fence: Serve says no  └─ Fence: stopped, forgotten once nothing is under way
///
/// A connection is registered before the listener's owner is asked about its member. So a fence after the
/// answer finds the connection, and a fence before it makes the answer negative. Ids are never reused, so
/// fenced ids need not be remembered.
class MemberConnections : public std::enable_shared_from_this<MemberConnections> {
  using Ticket = std::pair<MemberId, uint64_t>;

 public:
  /// A registered connection. Its destructor forgets the connection. Does not keep the MemberConnections
  /// alive.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : connections_(std::move(other.connections_)), ticket_(std::exchange(other.ticket_, {})) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(connections_, other.connections_);
      std::swap(ticket_, other.ticket_);
      return *this;
    }
    ~Place() { Leave(); }

    /// The connection now serves, and a fence stops `end`. False, without effect: the member was fenced since
    /// the registration. `begin` runs where no fence can intervene.
    bool Serve(
        const MemberKey& key, std::shared_ptr<ServedEnd> end, const std::function<void()>& begin = [] {});
    /// Forgets the connection now.
    void Leave();
    /// Hands the connection to MemberConnections, which forgets it once its end is over.
    void Detach() { ticket_ = {}; }

   private:
    friend class MemberConnections;
    Place(std::weak_ptr<MemberConnections> connections, Ticket ticket)
        : connections_(std::move(connections)), ticket_(ticket) {}
    std::weak_ptr<MemberConnections> connections_;
    Ticket ticket_;  // number 0: none
  };

  Place Register(MemberId member);
  /// The key of a member with a serving connection. The caller has registered a connection, which a later
  /// fence finds together with the serving one, so the owner need not be asked again.
  std::optional<MemberKey> KnownKey(MemberId member);
  /// Stops all connections of the member. True: no request posted over them changes memory any more.
  bool Fence(MemberId member, bool kill);
  /// Members with connections, ascending. Includes stopped connections with an operation in flight.
  std::vector<MemberId> Members();

 private:
  struct Entry {
    MemberKey key{};
    std::shared_ptr<ServedEnd> end;  // null: the owner is being asked
    bool stopped = false;
  };
  using Entries = std::map<Ticket, Entry>;
  std::pair<Entries::iterator, Entries::iterator> Of(MemberId member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetTheOver();

  Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric
