#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fabric_case.h"
#include "bench/fabric_lane.h"

namespace nam::bench {

using Lanes = std::vector<std::unique_ptr<Lane>>;

/// Runs `body` for each of the first `threads` lanes on its own thread; returns the sum of the results, or
/// the first error.
absl::StatusOr<double> SumOverLanes(fabric::Fabric& fabric, const Lanes& lanes, uint32_t threads,
                                    const std::function<absl::StatusOr<double>(Lane&, size_t)>& body);

/// The machine's speed on the same work without the fabric: the yardstick of a provider.
struct FabricBound {
  std::string name;  // such as `memcpy and bare atomics on the same memory`
  std::function<bool(Operation)> covers;
  /// Operations per second of all threads, measured for about `duration_ns`.
  std::function<absl::StatusOr<double>(const FabricCase& wanted, int64_t duration_ns)> rate;
};

/// For fabrics that show peers' memory in place: copies between a lane's buffer and the server's region.
FabricBound MemoryBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For fabrics over sockets: plain socket pairs that move as many bytes per operation.
FabricBound SocketBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For simulated fabrics: the limits of the model's links and cards, in bytes and messages.
FabricBound LineRateBound(double bytes_per_second, double messages_per_second);

}  // namespace nam::bench
