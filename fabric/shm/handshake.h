#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/shm/channel_end.h"
#include "fabric/shm/datagram_directory.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/memory.h"
#include "fabric/shm/peer_process.h"
#include "fabric/shm/region_registry.h"
#include "fabric/shm/wire.h"

/// Both sides of the handshake drawn in wire.h.
namespace nam::fabric::shm {

/// The identity of this process in all its connections. Owned by the fabric.
struct Identity {
  std::string secret;
  ProcessId process{};
  RegionRegistry* regions = nullptr;
  const SharedMemory* doorbells = nullptr;
  PeerDirectory* peers = nullptr;
  Initiators* initiators = nullptr;
  DatagramDirectory* datagrams = nullptr;
};

/// The result of a handshake, from which a queue pair is made.
struct Established {
  std::shared_ptr<PeerProcess> peer;
  ChannelEnd channel;
  Access rights = Access::kAll;  // the most that this side may do in the peer's regions
};

/// The connecting side, on the caller's thread. UNAUTHENTICATED, PERMISSION_DENIED (no such live member),
/// UNAVAILABLE or DEADLINE_EXCEEDED.
absl::StatusOr<Established> ConnectHandshake(const Identity& identity, int socket, pid_t peer_pid,
                                             const MemberCredentials& member, Deadline deadline);

/// The listening side, one step per message, on the service thread.
class AcceptHandshake {
 public:
  /// `passive`: no Established results, because this process initiates nothing. `judged`: once the peer has
  /// proved the secret, the caller decides and calls Welcome.
  AcceptHandshake(const Identity* identity, bool passive, bool judged = false)
      : identity_(identity), passive_(passive), judged_(judged) {}

  /// Takes the next message and answers it. After an error the connection must end.
  absl::Status Step(int socket, Packet& packet);
  /// True if the caller must decide and call Welcome.
  bool awaits_judgement() const { return phase_ == Phase::kJudge; }
  MemberClaim claim() const;
  /// Called with the channel and the peer's process before the peer gets the channel. False refuses the peer.
  using Serve = std::function<bool(std::shared_ptr<const Mapping> channel, pid_t pid)>;
  absl::Status Welcome(int socket, Access rights, const Serve& serve);
  bool done() const { return phase_ == Phase::kDone; }
  Established& established() { return established_; }

 private:
  enum class Phase { kHello, kProof, kJudge, kAttach, kDone };

  absl::Status Challenge(int socket, const Message& hello);
  absl::Status CheckProof(int socket, const Message& proof);
  absl::Status Attach(const Packet& packet);

  const Identity* const identity_;
  const bool passive_;
  const bool judged_;
  Phase phase_ = Phase::kHello;
  pid_t peer_pid_ = 0;
  Nonce client_nonce_{};
  Nonce server_nonce_{};
  MemberId member_;
  MemberAnswer answer_{};
  Established established_;
};

}  // namespace nam::fabric::shm
