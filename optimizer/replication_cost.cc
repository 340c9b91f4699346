#include "optimizer/replication_cost.h"

#include <algorithm>

#include "plan/work_cost.h"

namespace nam::optimizer {
namespace {

namespace work_cost = plan::work_cost;

double NetworkMs(double bytes) {
  return bytes / kCardBytesPerUs / 1e3;
}

}  // namespace

ReplicationCosts CostsOf(const ReplicatedSides& sides) {
  const double build_ps = sides.rows * (work_cost::kFirstFilterRowPs + work_cost::kInsertRowPs) +
                          sides.bytes * work_cost::kChecksumBytePs;
  const double once_ms = NetworkMs(sides.bytes / sides.senders);
  // All servers' copies leave through the same cards, but no server takes more than its own card does.
  const double read_ms = std::max(once_ms * sides.servers, NetworkMs(sides.bytes));
  // One thread of each server receives a sender's stream.
  const double receivers = std::min(sides.senders, sides.threads);
  const double receive_ps =
      sides.datagrams * work_cost::kDatagramPs + sides.bytes * work_cost::kDatagramBytePs;
  return {.read_ms = std::max(read_ms, build_ps / sides.threads / work_cost::kPsPerMs),
          .multicast_ms =
              work_cost::kMulticastStartPs / work_cost::kPsPerMs +
              std::max({once_ms, NetworkMs(sides.bytes),
                        sides.datagrams / sides.senders * work_cost::kDatagramPs / work_cost::kPsPerMs,
                        (build_ps + receive_ps) / receivers / work_cost::kPsPerMs})};
}

}  // namespace nam::optimizer
