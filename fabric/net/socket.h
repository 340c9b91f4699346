#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

/// TCP sockets: always non-blocking, close-on-exec, without Nagle's delay.
namespace nam::fabric::net {

/// `host:port`, `[v6]:port`.
struct Endpoint {
  std::string host;
  std::string port;
};
absl::StatusOr<Endpoint> ParseEndpoint(const std::string& address);

/// INVALID_ARGUMENT, NOT_FOUND (no such host), UNAVAILABLE (port taken).
absl::StatusOr<UniqueFd> ListenOn(const Endpoint& endpoint, int backlog);
uint16_t BoundPort(int fd);

/// UNAVAILABLE says what was refused and a likely cause; DEADLINE_EXCEEDED.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& address, Deadline deadline);

/// Sets keepalive so that an idle connection to a vanished host fails after about `peer_timeout_us`.
/// TCP_USER_TIMEOUT is not used: it also ends connections to live peers that do not read.
void ConfigurePeerSocket(int fd, int64_t peer_timeout_us);
/// For a connection without progress for `peer_timeout_us`: true if sent bytes remain unacknowledged, so that
/// the peer's host must be gone. A live host acknowledges even if the application does not read.
bool PeerHostVanished(int fd, int64_t peer_timeout_us);
std::string PeerName(int fd);

/// Transfer whole messages within the deadline, for handshakes. UNAVAILABLE if the peer closed.
absl::Status SendAll(int fd, std::span<const std::byte> bytes, Deadline deadline);
absl::Status ReceiveAll(int fd, std::span<std::byte> bytes, Deadline deadline);

struct IoResult {
  size_t bytes = 0;
  bool lost = false;     // closed or reset by the peer
  bool unclear = false;  // the host does not answer; the peer may not know
};
/// Transfer what is possible now; `lost` only if nothing was transferred.
IoResult SendSome(int fd, std::span<iovec> parts);
IoResult ReceiveSome(int fd, std::span<iovec> parts);
/// Discards input until the peer has closed or reset the connection. False on timeout.
bool AwaitEnd(int fd, Deadline deadline);

}  // namespace nam::fabric::net
