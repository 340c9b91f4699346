#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "fabric/member.h"

namespace nam::fabric {

/// A member's connection, as its passive listener stops it.
class ServedEnd {
 public:
  virtual ~ServedEnd() = default;
  /// No operation of it begins any more. True once none is under way either; `kill` ends the process of a
  /// peer that stands still in the middle of one. Any thread, any number of times.
  virtual bool Stop(bool kill) = 0;
  /// The peer is gone, and no operation is under way: the connection can be forgotten.
  virtual bool Over() { return false; }
};

/// The connections of one passive listener, by member. Thread-safe.
///
///     Register ─▶ asked about ── Serve ─▶ serving ── its place ends ─▶ forgotten
///                      └─ Fence: Serve says no  └─ Fence: stopped, forgotten once nothing is under way
///
/// A connection is registered before the listener's owner is asked whether the membership is over. So a fence
/// that comes after the answer finds the connection, and a fence that came before makes the answer "over".
/// Ids are never used again, so fenced ids need not be remembered.
class MemberConnections : public std::enable_shared_from_this<MemberConnections> {
  using Ticket = std::pair<MemberId, uint64_t>;

 public:
  /// A registered connection; its destruction forgets it. Does not keep the MemberConnections.
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

    /// The connection serves from now on, and a fence stops `end`. False, and nothing happens: the member was
    /// fenced since the connection was registered. `begin` runs where no fence can come between.
    bool Serve(
        const MemberKey& key, std::shared_ptr<ServedEnd> end, const std::function<void()>& begin = [] {});
    /// Forgets the connection now.
    void Leave();
    /// Leaves it to MemberConnections, which forgets the connection once its end is over.
    void Detach() { ticket_ = {}; }

   private:
    friend class MemberConnections;
    Place(std::weak_ptr<MemberConnections> connections, Ticket ticket)
        : connections_(std::move(connections)), ticket_(ticket) {}
    std::weak_ptr<MemberConnections> connections_;
    Ticket ticket_;  // number 0: none
  };

  Place Register(MemberId member);
  /// The key of a member with a connection that serves. Whoever asks has registered a connection before,
  /// which a later fence finds as it finds that one; so the owner need not be asked again.
  std::optional<MemberKey> KnownKey(MemberId member);
  /// Stops all connections of the member. True: nothing that was posted over them changes memory any more.
  bool Fence(MemberId member, bool kill);
  /// Those with connections, ascending; also with one that is stopped and has an operation under way.
  std::vector<MemberId> Members();

 private:
  struct Entry {
    MemberKey key{};
    std::shared_ptr<ServedEnd> end;  // null: asked about
    bool stopped = false;
  };
  using Entries = std::map<Ticket, Entry>;
  /// With mutex_ held.
  std::pair<Entries::iterator, Entries::iterator> Of(MemberId member);
  void ForgetTheOver();

  std::mutex mutex_;
  uint64_t last_number_ = 0;
  Entries entries_;
};

}  // namespace nam::fabric
