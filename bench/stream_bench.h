#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/block_chains.h"
#include "bench/prefetch_command.h"
#include "bench/testbed_command.h"
#include "storage/block_stream.h"
#include "storage/channel.h"

/// The common parts of `nam bench prefetch` and `multicast`.
namespace nam::bench {

/// The parsed stream options.
struct StreamPlan {
  TestbedPlan testbed;
  uint32_t block_bytes = 0;
  uint32_t threads = 1;
  int64_t scan_ns = 0;  // charged per block; 0 on real fabrics, which take real time
};
absl::StatusOr<StreamPlan> MakeStreamPlan(const std::string& command, const StreamBenchOptions& options);
Json StreamConfig(const StreamPlan& plan);

/// A compute server's channels, one per thread; connected once, used in every round.
using Channels = std::vector<std::unique_ptr<storage::Channel>>;
absl::StatusOr<Channels> OpenChannels(fabric::Fabric& fabric, fabric::RegionDirectory& directory,
                                      uint32_t threads);

/// The blocks scanned by one thread.
struct Scanned {
  uint64_t blocks = 0;
  uint64_t sum = 0;
  int64_t first_ns = 0;  // arrival of the first block
  int64_t last_ns = 0;   // end of the last block's scan
  /// Blocks per second from the first to the last; 0 for fewer than two.
  double Rate() const;
};
/// Scans the blocks of `next` until it returns false.
absl::StatusOr<Scanned> Scan(Clock& clock, int64_t scan_ns,
                             const std::function<absl::StatusOr<bool>(storage::BlockView&)>& next);

/// Runs the bodies concurrently, each on a thread of its fabric; returns the first error.
struct Task {
  fabric::Fabric* fabric = nullptr;
  std::function<absl::Status()> body;
};
absl::Status RunAtOnce(const std::vector<Task>& tasks);

}  // namespace nam::bench
