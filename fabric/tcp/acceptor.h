#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/fabric.h"
#include "fabric/member_connections.h"
#include "fabric/tcp/decisions.h"
#include "fabric/tcp/handshake.h"

namespace nam::fabric::tcp {

/// What an authenticated peer may do, and the place that it was registered at as a member's.
struct Grant {
  Access rights = Access::kAll;
  MemberConnections::Place place;
  MemberKey key{};
};

/// What a listener makes of those who come. Called by the acceptor's thread.
class Door {
 public:
  virtual ~Door() = default;
  /// What a peer is told that knows the secret. All but kOk end its connection.
  virtual ServerVerdict Judge(const ClientHello& hello) = 0;
  /// It was told kOk, and has said `first`, which is AcceptorOptions::first_bytes long.
  virtual void Admit(AuthenticatedSocket socket, const ClientHello& hello, Grant grant,
                     std::span<const std::byte> first) = 0;
  /// Closes what took too long after it was admitted; when the next will have.
  virtual int64_t Expire([[maybe_unused]] int64_t now_ns) { return INT64_MAX; }
};

struct AcceptorOptions {
  Credentials credentials;
  int64_t peer_timeout_us = 0;  // until a connection must be admitted
  size_t first_bytes = 0;       // that a peer sends when it is welcome
  /// Null: connections are nobody's, and may do everything. Outlives the acceptor.
  Admission* admission = nullptr;
};

/// Accepts and authenticates connections on a thread of its own, so that strangers cost nobody else anything:
///
///     accepted ─▶ handshake ─▶ Judge ─kOk─▶ [a member's: asked about] ─▶ its first bytes ─▶ Admit
///
/// Bounded in number (fabric/strangers.h) and in time, which is counted from the start for all of it, however
/// slowly a stranger talks. Out of descriptors, strangers give theirs back; only if there are none, accepting
/// pauses.
class Acceptor {
 public:
  /// Listens on host:port; nobody is accepted before Start.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          const AcceptorOptions& options);
  /// `door` outlives this.
  void Start(Door& door);
  /// The door is not called any more.
  ~Acceptor();

  const std::string& address() const { return address_; }

 private:
  struct Arrival {
    Arrival(UniqueFd fd, uint64_t source, int64_t deadline_ns, size_t first_bytes)
        : handshake(std::move(fd), deadline_ns), source(source), first(first_bytes) {}
    ServerHandshake handshake;
    const uint64_t source;  // its host
    ServerVerdict verdict;
    bool asked = false;  // its member is asked about
    bool welcome = false;
    Grant grant;
    std::vector<std::byte> first;
    size_t received_bytes = 0;  // of `first`
  };
  enum class Step { kAgain, kOver };

  Acceptor(UniqueFd socket, std::string address, const AcceptorOptions& options);
  void Run();
  void AcceptSockets();
  void Admit(UniqueFd fd, uint64_t source);
  /// Closes one of the arrivals.
  void MakeRoom();
  Step Advance(uint64_t id, Arrival& arrival);
  /// Of one that knows the secret.
  Step Meet(uint64_t id, Arrival& arrival);
  Step Welcome(Arrival& arrival);
  Step TakeFirstBytes(Arrival& arrival);
  void TakeDecisions();
  void WatchArrival(uint64_t id, Arrival& arrival, bool on);
  /// Closes what took too long; when the next will have.
  int64_t Expire();
  void WatchSocket(bool on);

  const AcceptorOptions options_;
  const size_t arrivals_max_;
  const UniqueFd socket_;
  const std::string address_;
  const UniqueFd epoll_;
  const UniqueFd stop_;
  const std::shared_ptr<Decisions> decisions_;
  Door* door_ = nullptr;

  // Of the thread.
  std::map<uint64_t, Arrival> arrivals_;  // by arrival
  uint64_t next_arrival_;
  int64_t accept_again_ns_ = 0;  // not 0: out of descriptors until then

  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric::tcp
