#include "bench/stream_bench.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/fabric_case.h"
#include "storage/block.h"

namespace nam::bench {
namespace {

/// Five threads that take 800 ns to sum up a block: a server of ten slow cores that is shared with a memory
/// server, in the simulated network. This limits one compute server to about five million blocks of 2 KiB per
/// second, as in I-Store's figures; two and more servers are limited by the network.
constexpr uint32_t kSimulatedThreads = 5;
constexpr int64_t kSimulatedScanNs = 800;

}  // namespace

absl::StatusOr<StreamPlan> MakeStreamPlan(const std::string& command, const StreamBenchOptions& options) {
  StreamPlan plan;
  NAM_ASSIGN_OR_RETURN(plan.testbed, MakeTestbedPlan(command, options.testbed));
  if (options.block_bytes < storage::kMinBlockBytes || options.block_bytes > 64 * 1024 ||
      options.block_bytes % 8 != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("--block-bytes is %d to 65536 in steps of 8, not %d",
                                                      storage::kMinBlockBytes, options.block_bytes));
  }
  if (options.threads > kBenchThreadsMax)
    return absl::InvalidArgumentError(absl::StrFormat("--threads is 0 to %d", kBenchThreadsMax));
  const bool simulated = plan.testbed.testbed.kind == fabric::Kind::kSim;
  plan.block_bytes = static_cast<uint32_t>(options.block_bytes);
  plan.threads = options.threads != 0 ? options.threads : simulated ? kSimulatedThreads : 1;
  if (simulated) plan.scan_ns = options.scan_ns != 0 ? options.scan_ns : kSimulatedScanNs;
  return plan;
}

Json StreamConfig(const StreamPlan& plan) {
  Json config{{"block_bytes", plan.block_bytes}, {"threads", plan.threads}};
  if (plan.scan_ns != 0) config["scan_ns"] = plan.scan_ns;
  return config;
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
