#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/block_chains.h"
#include "bench/testbed_command.h"
#include "storage/block_stream.h"
#include "storage/channel.h"

/// The common parts of `nam bench prefetch` and `multicast`.
namespace nam::bench {

class StreamCommand : public TestbedCommand {
 public:
  absl::Status Check() override;

  uint32_t block_bytes() const { return static_cast<uint32_t>(block_bytes_); }
  uint32_t threads() const { return threads_; }
  uint32_t scan_ns() const { return scan_ns_; }

 protected:
  using TestbedCommand::TestbedCommand;
  std::vector<Option> WithStream(std::vector<Option> own);
  /// The server's memory for so many blocks.
  void ReserveBlocks(uint64_t blocks) { testbed_.region_bytes = (blocks + 2) * block_bytes_ + 4096; }

 private:
  uint64_t block_bytes_ = 2048;
  uint32_t threads_ = 0;  // per compute server; 0: the fabric's default
  /// Charged per block; 0: the paper's processors. On real fabrics scans take real time.
  uint32_t scan_ns_ = 0;
};

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

/// The blocks' part of a row: the median rate, and that of each run.
void AddRates(const std::vector<double>& rates, uint32_t block_bytes, Json& row);

}  // namespace nam::bench
