#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/prefetch_command.h"
#include "bench/query_report.h"
#include "bench/stream_bench.h"
#include "storage/multicast_blocks.h"
#include "storage/multicast_stream.h"

namespace nam::bench {
namespace {

constexpr char kCommand[] = "bench multicast";
constexpr uint32_t kReceiversMax = 16;
constexpr uint32_t kBlocksMax = 1u << 20;
constexpr uint32_t kWindow = 10;
constexpr double kGiB = 1 << 30;

struct ReceiverFigures {
  uint32_t receivers = 0;
  bool multicast = false;
  std::vector<double> rates;  // blocks per second and receiver, the mean of a round
  uint64_t blocks = 0;        // delivered in all rounds
  uint64_t repaired = 0;      // of these, by READ
};

/// A compute server: a process on its own host (in `sim`), with one channel per thread.
struct Receiver {
  std::unique_ptr<fabric::Fabric> fabric;
  Channels channels;
};

class MulticastBench {
 public:
  MulticastBench(Testbed& testbed, const StreamPlan& plan, uint32_t blocks)
      : testbed_(testbed),
        plan_(plan),
        chains_(blocks / kBlocksPerChain),
        directory_(testbed.server().address()) {}

  absl::StatusOr<TestbedReport> Run(const std::vector<uint32_t>& receivers, const Proceed& proceed) {
    for (uint32_t i = 0; i < *std::max_element(receivers.begin(), receivers.end()); ++i) {
      Receiver& receiver = receivers_.emplace_back();
      NAM_ASSIGN_OR_RETURN(receiver.fabric, testbed_.OpenClient());
      NAM_ASSIGN_OR_RETURN(receiver.channels, OpenChannels(*receiver.fabric, directory_, plan_.threads));
    }
    NAM_ASSIGN_OR_RETURN(set_, WriteChains(*receivers_.front().channels.front(), testbed_.server().address(),
                                           plan_.block_bytes, chains_));
    ShareOutChains();
    std::vector<ReceiverFigures> figures;
    for (const bool multicast : {false, true})
      for (const uint32_t k : receivers) figures.push_back({.receivers = k, .multicast = multicast});
    for (int round = 0; round < plan_.testbed.repeat; ++round) {
      for (ReceiverFigures& each : figures) {
        if (!proceed(absl::StrCat("round ", round + 1, " of ", plan_.testbed.repeat, ", ", each.receivers,
                                  " receivers, ", each.multicast ? "multicast" : "read")))
          return absl::CancelledError("interrupted");
        NAM_RETURN_IF_ERROR(Round(each));
      }
    }
    return Report(figures);
  }

 private:
  /// Assigns thread t of every receiver the same part of the table.
  void ShareOutChains() {
    parts_.resize(plan_.threads);
    for (uint32_t chain = 0; chain < chains_; ++chain) {
      storage::MulticastTable& part = parts_[chain % plan_.threads];
      part.table = set_.table;
      part.chains.push_back({chain, set_.chains[chain].block_rows, set_.pointers[chain]});
    }
  }

  absl::Status Round(ReceiverFigures& figures) {
    std::vector<storage::MulticastAddress> senders;
    if (figures.multicast) {
      MulticastRequest request{.first_group = next_group_, .members = figures.receivers};
      for (const storage::MulticastTable& part : parts_) {
        NAM_ASSIGN_OR_RETURN(const auto blocks, storage::MulticastBlocks::Number({part}, {kBenchServer}));
        request.streams.push_back(blocks.ExtentsOf(0));
      }
      next_group_ += plan_.threads;
      NAM_ASSIGN_OR_RETURN(senders, testbed_.server().StartMulticast(request));
    }
    std::vector<Scanned> scanned(size_t{figures.receivers} * plan_.threads);
    std::vector<uint64_t> repaired(scanned.size());
    std::vector<Task> tasks;
    for (size_t i = 0; i < scanned.size(); ++i) {
      const auto member = static_cast<uint32_t>(i / plan_.threads);
      const size_t part = i % plan_.threads;
      Receiver& receiver = receivers_[member];
      tasks.push_back({receiver.fabric.get(), [&, i, member, part]() -> absl::Status {
                         storage::Channel& channel = *receivers_[member].channels[part];
                         NAM_ASSIGN_OR_RETURN(scanned[i],
                                              figures.multicast
                                                  ? Receive(channel, senders[part], part, member, repaired[i])
                                                  : Read(channel, part));
                         return absl::OkStatus();
                       }});
    }
    const absl::Status received = RunAtOnce(tasks);
    if (figures.multicast) {
      const absl::Status sent = testbed_.server().FinishMulticast();
      NAM_RETURN_IF_ERROR(received);
      NAM_RETURN_IF_ERROR(sent);
    }
    NAM_RETURN_IF_ERROR(received);
    figures.repaired += std::accumulate(repaired.begin(), repaired.end(), uint64_t{0});
    return Add(scanned, figures);
  }

  absl::StatusOr<Scanned> Read(storage::Channel& channel, size_t part) {
    size_t next = part;
    storage::BlockStream stream(channel, set_.table, {.window = kWindow},
                                [&]() -> std::optional<storage::ChainStart> {
                                  if (next >= set_.chains.size()) return std::nullopt;
                                  const storage::ChainStart& chain = set_.chains[next];
                                  next += plan_.threads;
                                  return chain;
                                });
    return Scan(channel.fabric().clock(), plan_.scan_ns,
                [&](storage::BlockView& block) { return stream.Next(block); });
  }

  absl::StatusOr<Scanned> Receive(storage::Channel& channel, const storage::MulticastAddress& sender,
                                  size_t part, uint32_t member, uint64_t& repaired) {
    NAM_ASSIGN_OR_RETURN(const auto stream, storage::MulticastStream::Open(channel, {sender}, {parts_[part]},
                                                                           {.member = member}));
    auto scanned = Scan(channel.fabric().clock(), plan_.scan_ns,
                        [&](storage::BlockView& block) { return stream->Next(block); });
    repaired = stream->counters(0).repaired_blocks;
    return scanned;
  }

  /// A receiver's rate is the total of its threads.
  absl::Status Add(const std::vector<Scanned>& scanned, ReceiverFigures& figures) const {
    double rate = 0;
    for (size_t i = 0; i < scanned.size(); ++i) {
      const size_t chains = parts_[i % plan_.threads].chains.size();
      if (scanned[i].blocks != chains * kBlocksPerChain || scanned[i].sum != chains * set_.sum_per_chain)
        return absl::DataLossError("a stream delivered wrong blocks");
      figures.blocks += scanned[i].blocks;
      rate += scanned[i].Rate();
    }
    figures.rates.push_back(rate / figures.receivers);
    return absl::OkStatus();
  }

  TestbedReport Report(const std::vector<ReceiverFigures>& figures) const {
    TestbedReport report{
        .config = StreamConfig(plan_),
        .rows = Json::array(),
        .summary = Json::object(),
        .compared = {.settings = {"way", "receivers"}, .figures = {"blocks_per_second"}},
        .remarks = "Blocks per second of each receiver: the mean of all, and medians of the rounds.\n",
        .plot = PlottedColumns{.title = "Blocks a second of each receiver",
                               .series = "way",
                               .x = "receivers",
                               .y = "blocks_per_second",
                               .x_label = "receivers",
                               .y_label = "blocks/s"}};
    report.config["window"] = kWindow;
    report.config["blocks"] = chains_ * kBlocksPerChain;
    const auto rate_of = [&](uint32_t receivers, bool multicast) -> double {
      for (const ReceiverFigures& each : figures)
        if (each.receivers == receivers && each.multicast == multicast) return Median(each.rates);
      return 0;
    };
    for (const ReceiverFigures& each : figures) {
      const double rate = Median(each.rates);
      report.rows.push_back({{"way", each.multicast ? "multicast" : "read"},
                             {"receivers", each.receivers},
                             {"blocks_per_second", std::llround(rate)},
                             {"gib_per_second", Rounded(rate * set_.block_bytes / kGiB)}});
      if (!each.multicast) continue;
      report.rows.back()["repaired_over_blocks"] =
          Rounded(static_cast<double>(each.repaired) / static_cast<double>(each.blocks));
      report.summary[absl::StrCat("multicast_over_read_", each.receivers, "_receivers")] =
          Rounded(rate / std::max(rate_of(each.receivers, false), 1e-9));
    }
    for (const bool multicast : {false, true}) {
      const double one = rate_of(1, multicast), eight = rate_of(8, multicast);
      if (one > 0 && eight > 0)
        report.summary[absl::StrCat(multicast ? "multicast" : "read", "_8_over_1_receivers")] =
            Rounded(eight / one);
    }
    return report;
  }

  Testbed& testbed_;
  const StreamPlan& plan_;
  const uint32_t chains_;
  OneServer directory_;
  std::vector<Receiver> receivers_;
  ChainSet set_;
  std::vector<storage::MulticastTable> parts_;
  uint32_t next_group_ = 1;
};

absl::Status Check(const std::vector<uint32_t>& receivers, uint32_t blocks, uint32_t threads) {
  for (const uint32_t k : receivers) {
    if (k < 1 || k > kReceiversMax)
      return absl::InvalidArgumentError(absl::StrCat("--receivers is 1 to ", kReceiversMax, ", not ", k));
  }
  if (blocks < kBlocksPerChain * threads || blocks > kBlocksMax) {
    return absl::InvalidArgumentError(absl::StrCat("--blocks is ", kBlocksPerChain * threads, " to ",
                                                   kBlocksMax, " with ", threads, " threads, not ", blocks));
  }
  return absl::OkStatus();
}

}  // namespace

int RunMulticastBench(const MulticastBenchOptions& options) {
  std::vector<uint32_t> receivers = options.receivers;
  if (receivers.empty()) receivers = {1, 2, 3, 4, 5, 6, 7, 8};
  auto plan = MakeStreamPlan(kCommand, options.stream);
  if (!plan.ok()) return RefuseOptions(plan.status());
  if (const absl::Status checked = Check(receivers, options.blocks, plan->threads); !checked.ok())
    return RefuseOptions(checked);
  plan->testbed.testbed.region_bytes = uint64_t{options.blocks + 2} * plan->block_bytes + 4096;
  return RunTestbedCommand(kCommand, plan->testbed, [&](Testbed& testbed, const Proceed& proceed) {
    return MulticastBench(testbed, *plan, options.blocks).Run(receivers, proceed);
  });
}

}  // namespace nam::bench
