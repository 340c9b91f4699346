#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "fabric/tcp/wire.h"

/// Both sides of the handshake drawn in wire.h.
namespace nam::fabric::tcp {

struct AuthenticatedSocket {
  UniqueFd fd;
  ListenMode mode = ListenMode::kPassive;
  uint64_t token = 0;
};

/// The connecting side. UNAVAILABLE, UNAUTHENTICATED, FAILED_PRECONDITION (another version) or
/// DEADLINE_EXCEEDED.
absl::StatusOr<AuthenticatedSocket> ConnectAuthenticated(const std::string& address, Role role,
                                                         uint64_t token, const std::string& secret,
                                                         Deadline deadline);

/// The accepting side of one connection, as far as it has come. Never blocks; the listener's thread
/// calls Advance when there is input, and closes what takes too long.
class ServerHandshake {
 public:
  enum class Outcome {
    kAgain,          // wait for input
    kAuthenticated,  // the peer knows the secret: decide, and Conclude
    kClose,
  };

  ServerHandshake(UniqueFd fd, int64_t deadline_ns) : fd_(std::move(fd)), deadline_ns_(deadline_ns) {}

  Outcome Advance(const std::string& secret);
  /// Tells the peer what was decided. False when it is gone.
  bool Conclude(const std::string& secret, const ServerVerdict& verdict);

  int fd() const { return fd_.get(); }
  UniqueFd TakeFd() { return std::move(fd_); }
  const ClientHello& hello() const { return hello_; }
  int64_t deadline_ns() const { return deadline_ns_; }

 private:
  Outcome AnswerHello();

  UniqueFd fd_;
  const int64_t deadline_ns_;
  bool hello_received_ = false;
  std::array<std::byte, sizeof(ClientHello)> input_;
  size_t input_bytes_ = 0;
  ClientHello hello_;
  ServerChallenge challenge_;
};

}  // namespace nam::fabric::tcp
