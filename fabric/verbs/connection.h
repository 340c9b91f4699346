#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/handles.h"
#include "fabric/verbs/wire.h"

/// Creates reliable queue pairs and connects them with a peer's; wire.h draws the messages.
namespace nam::fabric::verbs {

/// Depths requested from the NIC: larger than QueuePairOptions, see VerbsQueuePair.
struct QueueDepths {
  uint32_t send = 0;
  uint32_t receive = 0;
  uint32_t inline_bytes = 0;
};

/// A queue pair in INIT, and what the peer must know of it. Has fewer inline bytes if the NIC supports fewer.
struct NewQueuePair {
  QueuePairHandle handle;
  Offer offer;
  uint32_t inline_bytes = 0;
};
/// `rights`: the most that the peer may do, whatever its keys allow.
absl::StatusOr<NewQueuePair> CreateQueuePair(const Core& core, ibv_cq* completions, const QueueDepths& depths,
                                             Access rights = Access::kAll);

/// Moves the queue pair from INIT to RTS, connected to the peer's.
absl::Status BringUp(const Core& core, const NewQueuePair& queue_pair, const Offer& peer,
                     const std::string& peer_name);

/// The smaller of the two ends' MTUs.
ibv_mtu PathMtu(const Core& core, const Offer& peer);

absl::Status SendOffer(int fd, const Offer& offer, Deadline deadline);
absl::StatusOr<Offer> ReceiveOffer(int fd, const std::string& peer_name, Deadline deadline);
absl::Status SendReady(int fd, Deadline deadline);
absl::Status ReceiveReady(int fd, Deadline deadline);

}  // namespace nam::fabric::verbs
