#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
class FabricBound {
 public:
  virtual ~FabricBound() = default;
  /// Such as `memcpy and bare atomics on the same memory`.
  virtual const char* name() const = 0;
  virtual bool Covers(const FabricCase& wanted) const = 0;
  /// Operations per second of all threads, measured for about `duration_ns`.
  virtual absl::StatusOr<double> Rate(const FabricCase& wanted, int64_t duration_ns) = 0;
};

/// For fabrics that show peers' memory in place: copies between a lane's buffer and the server's region.
std::unique_ptr<FabricBound> MakeMemoryBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For fabrics over sockets: plain socket pairs that move as many bytes per operation.
std::unique_ptr<FabricBound> MakeSocketBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For simulated fabrics: the limits of the model's links and cards, in bytes and messages.
std::unique_ptr<FabricBound> MakeLineRateBound(double bytes_per_second, double messages_per_second);

}  // namespace nam::bench
