#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "fabric/net/handshake_wire.h"
#include "fabric/net/sealed_stream.h"

/// Both sides of the handshake drawn in handshake_wire.h.
namespace nam::fabric::net {

/// Settings that both sides of a handshake must share.
struct Credentials {
  std::string secret;
  bool encrypt = false;
};

struct AuthenticatedSocket {
  UniqueFd fd;
  StreamKeys keys;  // for the traffic that follows
  ListenMode mode = ListenMode::kPassive;
  uint64_t token = 0;
};

/// The connecting side's statements about itself.
struct Introduction {
  Role role = Role::kForward;
  uint64_t token = 0;
  MemberCredentials member;
};

/// The connecting side. UNAVAILABLE, UNAUTHENTICATED, PERMISSION_DENIED (no such live member),
/// FAILED_PRECONDITION (different version, or only one side encrypts) or DEADLINE_EXCEEDED.
absl::StatusOr<AuthenticatedSocket> ConnectAuthenticated(const std::string& address,
                                                         const Introduction& introduction,
                                                         const Credentials& credentials, Deadline deadline);

/// The accepting side of one connection. Never blocks: the listener's thread calls Advance on input, and
/// closes connections that take too long.
class ServerHandshake {
 public:
  enum class Outcome {
    kAgain,          // wait for input
    kAuthenticated,  // the peer has proved the secret: decide, then Conclude
    kClose,
  };

  ServerHandshake(UniqueFd fd, int64_t deadline_ns) : fd_(std::move(fd)), deadline_ns_(deadline_ns) {}

  Outcome Advance(const Credentials& credentials);
  /// Tells the peer the verdict. False if the peer is gone.
  bool Conclude(const std::string& secret, const ServerVerdict& verdict);

  int fd() const { return fd_.get(); }
  /// Call after Conclude.
  AuthenticatedSocket Take(const Credentials& credentials, const ServerVerdict& verdict);
  const ClientHello& hello() const { return hello_; }
  /// Call once authenticated. Id 0: the peer names no member.
  MemberClaim member(const std::string& secret) const;
  int64_t deadline_ns() const { return deadline_ns_; }

 private:
  Outcome AnswerHello(bool encrypt);

  UniqueFd fd_;
  const int64_t deadline_ns_;
  bool hello_received_ = false;
  std::array<std::byte, std::max(sizeof(ClientHello), sizeof(ClientProof))> input_;
  size_t input_bytes_ = 0;
  ClientHello hello_;
  ServerChallenge challenge_;
  ClientProof proof_;
};

}  // namespace nam::fabric::net
