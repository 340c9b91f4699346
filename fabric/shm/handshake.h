#pragma once

#include <sys/types.h>

#include <cstdint>
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

/// The two sides of what wire.h draws.
namespace nam::fabric::shm {

/// Of this process, for all its connections. Owned by the fabric.
struct Identity {
  std::string secret;
  ProcessId process{};
  RegionRegistry* regions = nullptr;
  const SharedMemory* doorbells = nullptr;
  PeerDirectory* peers = nullptr;
  Initiators* initiators = nullptr;
  DatagramDirectory* datagrams = nullptr;
};

/// What a queue pair is made from.
struct Established {
  std::shared_ptr<PeerProcess> peer;
  ChannelEnd channel;
};

/// The connecting side, on the caller's thread. UNAUTHENTICATED, UNAVAILABLE or DEADLINE_EXCEEDED.
absl::StatusOr<Established> ConnectHandshake(const Identity& identity, int socket, pid_t peer_pid,
                                             Deadline deadline);

/// The listening side, a step per message, on the service thread.
class AcceptHandshake {
 public:
  /// Passive connections get no Established: their process initiates nothing.
  AcceptHandshake(const Identity* identity, bool passive) : identity_(identity), passive_(passive) {}

  /// Takes the next message and answers it. An error ends the connection.
  absl::Status Step(int socket, Packet& packet);
  bool done() const { return phase_ == Phase::kDone; }
  Established& established() { return established_; }

 private:
  enum class Phase { kHello, kProof, kAttach, kDone };

  absl::Status Challenge(int socket, const Message& hello);
  absl::Status Welcome(int socket, const Message& proof);
  absl::Status Attach(const Packet& packet);

  const Identity* const identity_;
  const bool passive_;
  Phase phase_ = Phase::kHello;
  pid_t peer_pid_ = 0;
  Nonce client_nonce_{};
  Nonce server_nonce_{};
  Established established_;
};

}  // namespace nam::fabric::shm
