#pragma once

#include <sys/socket.h>

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
#include "fabric/net/decisions.h"
#include "fabric/net/handshake.h"

namespace nam::fabric::net {

/// The rights of an authenticated peer, and its registered place if it is a member.
struct Grant {
  Access rights = Access::kAll;
  MemberConnections::Place place;
  MemberKey key{};
};

/// A listener's decisions on arriving peers. Called on the acceptor's thread.
class Door {
 public:
  virtual ~Door() = default;
  /// Decides on a peer that has proved the secret. Any status but kOk ends its connection.
  virtual ServerVerdict Judge(const ClientHello& hello) = 0;
  /// The peer was told kOk and has sent `first`, which is AcceptorOptions::first_bytes long.
  virtual void Admit(AuthenticatedSocket socket, const ClientHello& hello, Grant grant,
                     std::span<const std::byte> first) = 0;
  /// Closes admitted connections that took too long; returns when the next one will expire.
  virtual int64_t Expire([[maybe_unused]] int64_t now_ns) { return INT64_MAX; }
};

/// The host that a connection comes from: an IPv4 address, also if an IPv6 one stands for it
/// (::ffff:a.b.c.d), or the network of an IPv6 address, because a host has all addresses of its network.
uint64_t SourceOf(const sockaddr_storage& peer);

struct AcceptorOptions {
  Credentials credentials;
  int64_t peer_timeout_us = 0;  // until a connection must be admitted
  size_t first_bytes = 0;       // that a welcome peer sends
  /// Null: connections belong to no member and have all rights. Must outlive the acceptor.
  Admission* admission = nullptr;
};

/// Accepts and authenticates connections on its own thread, so that strangers delay no other connection:
///
///     accepted ─▶ handshake ─▶ Judge ─kOk─▶ [a member's: asked about] ─▶ its first bytes ─▶ Admit
///
/// Connections are bounded in number (fabric/strangers.h) and in time. The time limit covers all steps
/// together, from the start. When places or descriptors run out, strangers are closed, and never an arrival
/// that has proved the secret. If there are no strangers, the newcomer is closed, or accepting pauses until
/// there may be descriptors again.
class Acceptor {
 public:
  /// Listens on host:port. Accepts nothing before Start.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          const AcceptorOptions& options);
  /// `door` must outlive this object.
  void Start(Door& door);
  /// Stops the calls of the door.
  ~Acceptor();

  const std::string& address() const { return address_; }

 private:
  struct Arrival {
    Arrival(UniqueFd fd, uint64_t source, int64_t deadline_ns, size_t first_bytes)
        : handshake(std::move(fd), deadline_ns), source(source), first(first_bytes) {}
    ServerHandshake handshake;
    const uint64_t source;  // its host
    ServerVerdict verdict;
    bool asked = false;  // the owner is being asked about its member
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
  /// Closes one of the strangers; false if there are none. An arrival that has proved the secret never makes
  /// room for one that has not.
  bool MakeRoom();
  Step Advance(uint64_t id, Arrival& arrival);
  /// The peer has proved the secret.
  Step Meet(uint64_t id, Arrival& arrival);
  Step Welcome(Arrival& arrival);
  Step ReadFirstBytes(Arrival& arrival);
  void ApplyDecisions();
  void WatchArrival(uint64_t id, Arrival& arrival, bool on);
  /// Closes overdue arrivals; returns when the next one will be overdue.
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

  // Acceptor thread only.
  std::map<uint64_t, Arrival> arrivals_;  // by arrival
  uint64_t next_arrival_;
  int64_t accept_again_ns_ = 0;  // not 0: out of descriptors until then

  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric::net
