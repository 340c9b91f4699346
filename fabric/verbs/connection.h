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

/// Making reliable queue pairs and bringing them up with a peer's; wire.h draws who says what.
namespace nam::fabric::verbs {

/// What a NIC's queue pair is asked for: more than QueuePairOptions, see VerbsQueuePair.
struct QueueDepths {
  uint32_t send = 0;
  uint32_t receive = 0;
  uint32_t inline_bytes = 0;
};

/// A queue pair in INIT, and what the peer must know of it. With fewer inline bytes if the NIC has fewer.
struct NewQueuePair {
  QueuePairHandle handle;
  Offer offer;
  uint32_t inline_bytes = 0;
};
/// `rights`: the most that the peer may do, whatever its keys allow.
absl::StatusOr<NewQueuePair> CreateQueuePair(const Core& core, ibv_cq* completions, const QueueDepths& depths,
                                             Access rights = Access::kAll);

/// From INIT to RTS with the peer's queue pair.
absl::Status BringUp(const Core& core, const NewQueuePair& queue_pair, const Offer& peer,
                     const std::string& peer_name);

/// The smaller of both ends' MTUs.
ibv_mtu PathMtu(const Core& core, const Offer& peer);

absl::Status SendOffer(int fd, const Offer& offer, Deadline deadline);
absl::StatusOr<Offer> ReceiveOffer(int fd, const std::string& peer_name, Deadline deadline);
absl::Status SendReady(int fd, Deadline deadline);
absl::Status ReceiveReady(int fd, Deadline deadline);

}  // namespace nam::fabric::verbs
