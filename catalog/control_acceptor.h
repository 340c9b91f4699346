#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nam::catalog {

/// Limits for connections to a server. The defaults suit servers of a cluster.
struct AcceptBounds {
  int strangers = 256;         // have not sent the name; beyond it the oldest is closed
  int guests = 128;            // have sent the name but made no call; beyond it the oldest is closed
  int connections = 4'096;     // total; beyond it new ones are refused
  int accepts_per_s = 4'000;   // excess waits in the kernel's queue
  int handshakes_per_s = 100;  // excess is closed
  int64_t hello_timeout_us = 3'000'000;
};

/// Accepts connections for a gRPC server, so that strangers' bytes cost next to nothing:
///
///     accept ─▶ stranger ─ClientHello with our name─▶ guest ─first call─▶ member ─▶ hangs up
///                  │ other bytes, another name, too late │                (gRPC has the socket; the
///                  ▼                                     ▼                acceptor a second descriptor)
///               closed; another name: with the alert     shut down when there are too many
///               `unrecognized_name`
///
/// A stranger's bytes are only peeked and stay in the socket for gRPC. The name is no secret, because clients
/// send it in clear: it stops peers that do not know it, and TLS stops all others without a certificate.
/// Peers that overheard the name can become guests. Has one thread, `nam-accept`. Thread-safe.
class ControlAcceptor {
 public:
  /// Takes a connected, nonblocking socket that has sent a ClientHello with the name. Runs on the acceptor's
  /// thread.
  using HandOver = std::function<void(int fd)>;

  /// Listens on every address of host:port; port 0 picks one. UNAVAILABLE gives the reason. Accepts nothing
  /// before Start().
  static absl::StatusOr<std::unique_ptr<ControlAcceptor>> Listen(const std::string& address,
                                                                 const std::string& name,
                                                                 const AcceptBounds& bounds);
  virtual ~ControlAcceptor() = default;

  /// host:port with the actual port.
  virtual const std::string& address() const = 0;
  virtual void Start(HandOver hand_over) = 0;
  /// Must be called for every call; `peer` as in grpc::ServerContext::peer().
  virtual void Called(const std::string& peer) = 0;
  /// True while a connection of this peer lasts.
  virtual bool Connected(const std::string& peer) const = 0;
  /// Stops accepting and frees the port; connections continue.
  virtual void Stop() = 0;

  struct Counts {
    int strangers = 0;
    int guests = 0;
    int members = 0;
    uint64_t accepted = 0;  // total
    uint64_t handed_over = 0;
  };
  virtual Counts counts() const = 0;
};

}  // namespace nam::catalog
