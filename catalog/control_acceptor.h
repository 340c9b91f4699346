#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nam::catalog {

/// What connections may cost a server. The defaults are for servers of a cluster.
struct AcceptBounds {
  int strangers = 256;         // have not said the name; beyond it the oldest is cut off
  int guests = 128;            // have said the name, but not called yet; beyond it the oldest is cut off
  int connections = 4'096;     // all together; beyond it new ones are refused
  int accepts_per_s = 4'000;   // others wait in the kernel's queue
  int handshakes_per_s = 100;  // others are cut off
  int64_t hello_timeout_us = 3'000'000;
};

/// Listens and accepts for a gRPC server, so that bytes of strangers cost next to nothing:
///
///     accept ─▶ stranger ─ClientHello asks for our name─▶ guest ─first call─▶ member ─▶ hangs up
///                  │ other bytes, another name, too late     │                  (gRPC has the socket; the
///                  ▼                                         ▼                   acceptor a second
///                  descriptor)
///               closed; another name: with the alert         shut down when there are too many
///               `unrecognized_name`
///
/// A stranger's bytes are only looked at, and stay in the socket for gRPC. The name is no secret (clients
/// send it in clear): it keeps out who knows nothing, and TLS behind it keeps out everybody without a
/// certificate. Those who overheard it can be guests. Has one thread, `nam-accept`. Thread-safe.
class ControlAcceptor {
 public:
  /// Takes a connected, nonblocking socket that has sent a ClientHello with the name. On the acceptor's
  /// thread.
  using HandOver = std::function<void(int fd)>;

  /// Listens on every address that host:port stands for; port 0 picks one. UNAVAILABLE says why not. Nobody
  /// is accepted before Start().
  static absl::StatusOr<std::unique_ptr<ControlAcceptor>> Listen(const std::string& address,
                                                                 const std::string& name,
                                                                 const AcceptBounds& bounds);
  virtual ~ControlAcceptor() = default;

  /// host:port with the port that was picked.
  virtual const std::string& address() const = 0;
  virtual void Start(HandOver hand_over) = 0;
  /// Of every call: `peer` as grpc::ServerContext::peer() names it.
  virtual void Called(const std::string& peer) = 0;
  /// Accepts nobody any more and gives the port back; the connections go on.
  virtual void Stop() = 0;

  struct Counts {
    int strangers = 0;
    int guests = 0;
    int members = 0;
    uint64_t accepted = 0;  // ever
    uint64_t handed_over = 0;
  };
  virtual Counts counts() const = 0;
};

}  // namespace nam::catalog
