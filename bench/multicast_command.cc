#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/stream_bench.h"
#include "storage/multicast_stream.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

constexpr uint32_t kReceiversMax = 16;
constexpr uint32_t kBlocksMax = 1u << 20;
constexpr uint32_t kWindow = 10;

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

class Multicast final : public StreamCommand {
 public:
  Multicast() : StreamCommand("multicast", "blocks to many receivers, by READ and by multicast", 5) {
    testbed_.own_process = false;
  }

  std::vector<Option> Options() override {
    return WithStream(
        {Option::Within("--receivers", &receiver_counts_, 1, kReceiversMax, "only these: 1 to 16 (1,2,…,8)"),
         Option::Within("--blocks", &blocks_, kBlocksPerChain, kBlocksMax, "blocks for every receiver")});
  }
  absl::Status Check() override {
    NAM_RETURN_IF_ERROR(StreamCommand::Check());
    if (blocks_ < kBlocksPerChain * threads()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--blocks is at least ", kBlocksPerChain * threads(), " for ", threads(), " threads"));
    }
    ReserveBlocks(blocks_);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) override {
    OneServer directory(testbed.server_address());
    std::vector<Receiver> receivers(*std::max_element(receiver_counts_.begin(), receiver_counts_.end()));
    for (Receiver& receiver : receivers) {
      NAM_ASSIGN_OR_RETURN(receiver.fabric, testbed.OpenClient());
      NAM_ASSIGN_OR_RETURN(receiver.channels, OpenChannels(*receiver.fabric, directory, threads()));
    }
    NAM_ASSIGN_OR_RETURN(set_, WriteChains(*receivers.front().channels.front(), testbed.server_address(),
                                           block_bytes(), blocks_ / kBlocksPerChain));
    for (uint32_t part = 0; part < threads(); ++part) parts_.push_back(PartOf(set_, part, threads()));
    std::vector<ReceiverFigures> figures;
    for (const bool multicast : {false, true})
      for (const uint32_t k : receiver_counts_) figures.push_back({.receivers = k, .multicast = multicast});
    for (int round = 0; round < repeat(); ++round) {
      for (ReceiverFigures& each : figures) {
        if (!run.Proceed(absl::StrCat("round ", round + 1, " of ", repeat(), ", ", each.receivers,
                                      " receivers, ", each.multicast ? "multicast" : "read")))
          return absl::CancelledError("interrupted");
        NAM_RETURN_IF_ERROR(Round(testbed.server(), receivers, each));
      }
    }
    return ReportOf(figures);
  }

  absl::Status Round(BenchServer& server, std::vector<Receiver>& receivers, ReceiverFigures& figures) {
    std::vector<storage::MulticastAddress> senders;
    if (figures.multicast) {
      NAM_ASSIGN_OR_RETURN(senders, server.StartMulticast(parts_, figures.receivers, next_group_));
      next_group_ += threads();
    }
    std::vector<Scanned> scanned(size_t{figures.receivers} * threads());
    std::vector<uint64_t> repaired(scanned.size());
    std::vector<Task> tasks;
    for (size_t i = 0; i < scanned.size(); ++i) {
      const auto member = static_cast<uint32_t>(i / threads());
      const size_t part = i % threads();
      Receiver& receiver = receivers[member];
      tasks.push_back({receiver.fabric.get(), [&, i, member, part]() -> absl::Status {
                         storage::Channel& channel = *receivers[member].channels[part];
                         NAM_ASSIGN_OR_RETURN(scanned[i],
                                              figures.multicast
                                                  ? Receive(channel, senders[part], part, member, repaired[i])
                                                  : Read(channel, part));
                         return absl::OkStatus();
                       }});
    }
    absl::Status outcome = RunAtOnce(tasks);
    if (figures.multicast) outcome.Update(server.FinishMulticast());
    NAM_RETURN_IF_ERROR(outcome);
    figures.repaired += std::accumulate(repaired.begin(), repaired.end(), uint64_t{0});
    return Add(scanned, figures);
  }

  absl::StatusOr<Scanned> Read(storage::Channel& channel, size_t part) {
    size_t next = part;
    storage::BlockStream stream(channel, set_.table, {.window = kWindow},
                                [&]() -> std::optional<storage::ChainStart> {
                                  if (next >= set_.chains.size()) return std::nullopt;
                                  const storage::ChainStart& chain = set_.chains[next];
                                  next += threads();
                                  return chain;
                                });
    return Scan(channel.fabric().clock(), scan_ns(),
                [&](storage::BlockView& block) { return stream.Next(block); });
  }

  absl::StatusOr<Scanned> Receive(storage::Channel& channel, const storage::MulticastAddress& sender,
                                  size_t part, uint32_t member, uint64_t& repaired) {
    NAM_ASSIGN_OR_RETURN(const auto stream, storage::MulticastStream::Open(channel, {sender}, {parts_[part]},
                                                                           {.member = member}));
    auto scanned = Scan(channel.fabric().clock(), scan_ns(),
                        [&](storage::BlockView& block) { return stream->Next(block); });
    repaired = stream->counters(0).repaired_blocks;
    return scanned;
  }

  /// A receiver's rate is the total of its threads.
  absl::Status Add(const std::vector<Scanned>& scanned, ReceiverFigures& figures) const {
    double rate = 0;
    for (size_t i = 0; i < scanned.size(); ++i) {
      const size_t chains = parts_[i % threads()].chains.size();
      if (scanned[i].blocks != chains * kBlocksPerChain || scanned[i].sum != chains * set_.sum_per_chain)
        return absl::DataLossError("a stream delivered wrong blocks");
      figures.blocks += scanned[i].blocks;
      rate += scanned[i].Rate();
    }
    figures.rates.push_back(rate / figures.receivers);
    return absl::OkStatus();
  }

  Report ReportOf(const std::vector<ReceiverFigures>& figures) const {
    Report report{
        .config = {{"window", kWindow}, {"blocks", set_.chains.size() * kBlocksPerChain}},
        .remarks = "Blocks per second of each receiver: the mean of all, and medians of the rounds.\n"};
    const auto rate_of = [&](uint32_t receivers, bool multicast) -> std::optional<double> {
      for (const ReceiverFigures& each : figures)
        if (each.receivers == receivers && each.multicast == multicast) return Median(each.rates);
      return std::nullopt;
    };
    for (const ReceiverFigures& each : figures) {
      Json& row = report.rows.emplace_back(
          Json{{"way", each.multicast ? "multicast" : "read"}, {"receivers", each.receivers}});
      AddRates(each.rates, set_.block_bytes, row);
      if (!each.multicast) continue;
      row["repaired_over_blocks"] =
          Rounded(static_cast<double>(each.repaired) / static_cast<double>(each.blocks));
      SetIf(report.summary, absl::StrCat("multicast_over_read_", each.receivers, "_receivers"),
            RatioOf(rate_of(each.receivers, true), rate_of(each.receivers, false)));
    }
    for (const bool multicast : {false, true}) {
      SetIf(report.summary, absl::StrCat(multicast ? "multicast" : "read", "_8_over_1_receivers"),
            RatioOf(rate_of(8, multicast), rate_of(1, multicast)));
    }
    LinePlot plot = PlotRows(report.rows, {.title = "Blocks a second of each receiver",
                                           .series = "way",
                                           .x = "receivers",
                                           .y = "blocks_per_second",
                                           .x_label = "receivers",
                                           .y_label = "blocks/s",
                                           .runs = "rounds_blocks_per_second"});
    constexpr char kPaper[] = "I-Store, figure 7c";
    plot.paper = {{"read", kPaper, 1, 5e6}, {"read", kPaper, 8, 0.8e6}, {"multicast", kPaper, {}, 4e6}};
    report.charts = {SvgOf(plot)};
    return report;
  }

  std::vector<uint32_t> receiver_counts_ = {1, 2, 3, 4, 5, 6, 7, 8};
  uint32_t blocks_ = 8192;  // per receiver
  ChainSet set_;
  std::vector<storage::MulticastTable> parts_;  // thread t of every receiver has part t
  uint32_t next_group_ = 1;
};

}  // namespace

std::unique_ptr<Command> MulticastCommand() {
  return std::make_unique<Multicast>();
}

}  // namespace nam::bench
