#include "bench/stream_bench.h"

#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "bench/fabric_case.h"
#include "storage/block.h"

namespace nam::bench {
namespace {

/// Five threads that take 800 ns to sum up a block: a server of ten slow cores that is shared with a memory
/// server, in the simulated network. This limits one compute server to about five million blocks of 2 KiB per
/// second, as in I-Store's figures; two and more servers are limited by the network.
constexpr uint32_t kSimulatedThreads = 5;
constexpr uint32_t kSimulatedScanNs = 800;

}  // namespace

std::vector<Option> StreamCommand::WithStream(std::vector<Option> own) {
  own.push_back(Option::Within("--block-bytes", Option::Bytes{&block_bytes_}, storage::kMinBlockBytes,
                               64 << 10, "size of a block"));
  own.push_back(
      Option::Within("--threads", &threads_, 0, kBenchThreadsMax, "per receiver; 0: the fabric's default"));
  own.push_back({"--scan-ns", &scan_ns_, "sim: computation per block; 0: as in I-Store's figures"});
  return WithTestbed(std::move(own));
}

absl::Status StreamCommand::Check() {
  NAM_RETURN_IF_ERROR(TestbedCommand::Check());
  if (block_bytes_ % 8 != 0) return absl::InvalidArgumentError("--block-bytes is a multiple of 8");
  if (threads_ == 0) threads_ = simulated() ? kSimulatedThreads : 1;
  scan_ns_ = !simulated() ? 0 : scan_ns_ != 0 ? scan_ns_ : kSimulatedScanNs;
  return absl::OkStatus();
}

void AddRates(const std::vector<double>& rates, uint32_t block_bytes, Json& row) {
  constexpr double kGiB = 1 << 30;
  const double rate = Median(rates);
  row["blocks_per_second"] = std::llround(rate);
  row["gib_per_second"] = Rounded(rate * block_bytes / kGiB);
  row["rounds_blocks_per_second"] = Rounded(rates);
}

absl::StatusOr<Channels> OpenChannels(fabric::Fabric& fabric, fabric::RegionDirectory& directory,
                                      uint32_t threads) {
  Channels channels;
  for (uint32_t i = 0; i < threads; ++i) {
    NAM_ASSIGN_OR_RETURN(channels.emplace_back(), storage::Channel::Open(fabric, directory, {}));
  }
  return channels;
}

double Scanned::Rate() const {
  if (blocks < 2 || last_ns <= first_ns) return 0;
  return static_cast<double>(blocks - 1) * 1e9 / static_cast<double>(last_ns - first_ns);
}

absl::StatusOr<Scanned> Scan(Clock& clock, int64_t scan_ns,
                             const std::function<absl::StatusOr<bool>(storage::BlockView&)>& next) {
  Scanned scanned;
  storage::BlockView block;
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, next(block));
    if (!more) break;
    scanned.sum += SumOf(block);
    clock.Charge(scan_ns);
    if (scanned.blocks++ == 0) scanned.first_ns = clock.NowNs();
  }
  scanned.last_ns = clock.NowNs();
  return scanned;
}

absl::Status RunAtOnce(const std::vector<Task>& tasks) {
  std::vector<absl::Status> results(tasks.size());
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (size_t i = 0; i < tasks.size(); ++i) {
    threads.push_back(tasks[i].fabric->StartThread("bench-stream", [&, i] { results[i] = tasks[i].body(); }));
  }
  threads.clear();
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace nam::bench
