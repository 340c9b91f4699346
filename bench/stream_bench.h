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

/// What `nam bench prefetch` and `multicast` have in common.
namespace nam::bench {

/// The stream's options, understood.
struct StreamPlan {
  TestbedPlan testbed;
  uint32_t block_bytes = 0;
  uint32_t threads = 1;
  int64_t scan_ns = 0;  // charged for each block; 0 on real fabrics, where it takes the time it takes
};
absl::StatusOr<StreamPlan> MakeStreamPlan(const std::string& command, const StreamBenchOptions& options);
Json StreamConfig(const StreamPlan& plan);

/// A channel for each thread of one compute server; connected once, used in every round.
using Channels = std::vector<std::unique_ptr<storage::Channel>>;
absl::StatusOr<Channels> OpenChannels(fabric::Fabric& fabric, fabric::RegionDirectory& directory,
                                      uint32_t threads);

/// What one thread has scanned.
struct Scanned {
  uint64_t blocks = 0;
  uint64_t sum = 0;
  int64_t first_ns = 0;  // when the first block was there
  int64_t last_ns = 0;   // when the last one was scanned
  /// Blocks per second from the first to the last; 0 for fewer than two.
  double Rate() const;
};
/// Scans whatever `next` delivers, until it says that there is no more.
absl::StatusOr<Scanned> Scan(Clock& clock, int64_t scan_ns,
                             const std::function<absl::StatusOr<bool>(storage::BlockView&)>& next);

/// Runs the bodies at the same time, each in a thread of its fabric; the first error.
struct Task {
  fabric::Fabric* fabric = nullptr;
  std::function<absl::Status()> body;
};
absl::Status RunAtOnce(const std::vector<Task>& tasks);

}  // namespace nam::bench
