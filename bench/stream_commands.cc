#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/bench_server.h"
#include "bench/commands.h"
#include "bench/fabric_case.h"
#include "bench/testbed.h"
#include "fabric/region_directory.h"
#include "storage/block.h"
#include "storage/block_sink.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/multicast_blocks.h"
#include "storage/multicast_stream.h"
#include "storage/remote_ptr.h"
#include "terminal/plot.h"

/// `nam bench prefetch` and `multicast`, I-Store's microbenchmarks of block streams.
namespace nam::bench {
namespace {

/// Five threads that take 800 ns to sum up a block: a server of ten slow cores that is shared with a memory
/// server, in the simulated network. This limits one compute server to about five million blocks of 2 KiB per
/// second, as in I-Store's figures; two and more servers are limited by the network.
constexpr uint32_t kSimulatedThreads = 5;
constexpr uint32_t kSimulatedScanNs = 800;
constexpr uint32_t kReceiversMax = 16;
constexpr uint32_t kBlocksMax = 1u << 20;
constexpr uint32_t kWindow = 10;
constexpr uint32_t kPrefetchChains = 512;
// Ways to get blocks.
constexpr char kReadWay[] = "read", kInPlaceWay[] = "in place", kMulticastWay[] = "multicast";

// The table to stream: one column of 8-byte integers, in chains whose blocks are scattered over one server's
// memory.

constexpr uint32_t kBlocksPerChain = 32;
constexpr uint64_t kAllocation = 1;
constexpr uint32_t kPointerGroup = 4;
constexpr uint64_t kFirstOffset = 4096;  // as on a memory server: the first page is never used
const std::vector<uint8_t> kWidths = {8};

storage::RemotePtr<void> PlaceOf(uint32_t chain, uint32_t index, uint32_t chains, uint32_t block_bytes) {
  return {kBenchServer, kFirstOffset + (uint64_t{index} * chains + chain) * block_bytes};
}

storage::BlockLayout LayoutOf(uint32_t block_bytes) {
  const uint32_t slots = storage::PointerSlots(kBlocksPerChain, kPointerGroup);
  return {kWidths, storage::BlockLayout::RowsThatFit(kWidths, block_bytes, slots), slots};
}

struct ChainSet {
  storage::StreamTable table;
  std::vector<storage::ChainStart> chains;
  std::vector<std::vector<uint64_t>> pointers;  // by chain, of all blocks
  uint64_t sum_per_chain = 0;                   // of all integers of a chain
  uint32_t block_bytes = 0;
};

/// Where `chains` chains lie in the server's memory.
ChainSet ChainsOf(uint32_t block_bytes, uint32_t chains) {
  const storage::BlockLayout layout = LayoutOf(block_bytes);
  const uint64_t values = uint64_t{kBlocksPerChain} * layout.block_rows();
  ChainSet set{.table = {kAllocation, kPointerGroup, kWidths, {0}},
               .sum_per_chain = values * (values - 1) / 2,
               .block_bytes = layout.bytes()};
  for (uint32_t chain = 0; chain < chains; ++chain) {
    std::vector<uint64_t>& pointers = set.pointers.emplace_back();
    for (uint32_t index = 0; index < kBlocksPerChain; ++index)
      pointers.push_back(PlaceOf(chain, index, chains, block_bytes).raw());
    set.chains.push_back({.partition = chain,
                          .number = chain,
                          .blocks = kBlocksPerChain,
                          .block_rows = layout.block_rows(),
                          .head = {pointers.begin(), pointers.begin() + kPointerGroup}});
  }
  return set;
}

/// Chain c holds 0, 1, 2 … across all its blocks.
void Fill(storage::BlockWriter& writer, const storage::BlockLayout& layout, uint32_t chain, uint32_t index,
          const std::vector<uint64_t>& pointers) {
  auto* values = reinterpret_cast<uint64_t*>(writer.page(0));
  for (uint32_t row = 0; row < layout.block_rows(); ++row)
    values[row] = uint64_t{index} * layout.block_rows() + row;
  std::span<const uint64_t> group;
  if (index % kPointerGroup == 0 && index + kPointerGroup < kBlocksPerChain) {
    group = std::span(pointers).subspan(index + kPointerGroup);
    group = group.first(std::min<size_t>(kPointerGroup, group.size()));
  }
  writer.Seal(kAllocation, chain, index, layout.block_rows(), group);
}

/// Every parts-th chain, from number `part` on.
storage::MulticastTable PartOf(const ChainSet& set, uint32_t part, uint32_t parts) {
  storage::MulticastTable table{.table = set.table};
  for (size_t chain = part; chain < set.chains.size(); chain += parts)
    table.chains.push_back({static_cast<uint32_t>(chain), set.chains[chain].block_rows, set.pointers[chain]});
  return table;
}

/// Writes `chains` chains through the channel. INVALID_ARGUMENT if they do not fit the server's region.
absl::StatusOr<ChainSet> WriteChains(storage::Channel& channel, const ServerAddress& server,
                                     uint32_t block_bytes, uint32_t chains) {
  if (kFirstOffset + uint64_t{chains} * kBlocksPerChain * block_bytes > server.region_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%d blocks of %d bytes do not fit into %d bytes",
                                                      uint64_t{chains} * kBlocksPerChain, block_bytes,
                                                      server.region_bytes));
  }
  const storage::BlockLayout layout = LayoutOf(block_bytes);
  ChainSet set = ChainsOf(block_bytes, chains);
  const auto grant = std::make_shared<fabric::Grant>(AllocationId(kAllocation), /*attempt=*/0);
  NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, storage::UseOf(grant));
  storage::BlockSink sink(channel, std::move(use), block_bytes);
  for (uint32_t chain = 0; chain < chains; ++chain) {
    const std::vector<uint64_t>& pointers = set.pointers[chain];
    for (uint32_t index = 0; index < kBlocksPerChain; ++index) {
      NAM_ASSIGN_OR_RETURN(std::byte* const block, sink.Acquire());
      storage::BlockWriter writer(layout, block);
      Fill(writer, layout, chain, index, pointers);
      NAM_RETURN_IF_ERROR(sink.Write(storage::RemotePtr<void>::FromRaw(pointers[index]), layout.bytes()));
    }
  }
  NAM_RETURN_IF_ERROR(sink.Flush());
  return set;
}

/// The work on top of a stream: the sum of a block's integers.
uint64_t SumOf(const storage::BlockView& block) {
  const auto* values = reinterpret_cast<const uint64_t*>(block.page(0));
  uint64_t sum = 0;
  for (uint32_t row = 0; row < block.rows(); ++row) sum += values[row];
  return sum;
}

/// A directory with the benchmark's server as the only memory server.
class OneServer final : public fabric::RegionDirectory {
 public:
  explicit OneServer(const ServerAddress& server)
      : regions_(std::make_shared<fabric::ServerRegions>(
            fabric::ServerRegions{.member = kBenchServer,
                                  .fabric_address = server.one_sided,
                                  .name = "the benchmark's server",
                                  .regions = {{0, server.region_bytes, server.rkey}}})) {}

  absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server, bool) override {
    if (server != kBenchServer) return absl::NotFoundError("the benchmark has one memory server");
    return regions_;
  }

 private:
  std::shared_ptr<const fabric::ServerRegions> regions_;
};

/// What takes turns: a way to get blocks, by windows or receivers.
struct StreamCase {
  std::string way;
  uint32_t number = 0;
  std::vector<double> rates;          // blocks per second and receiver, by round
  uint64_t blocks = 0, repaired = 0;  // in all rounds: delivered by multicast; of these, by READ
};

/// A compute server's channels, one per thread; connected once, used in every round.
using Channels = std::vector<std::unique_ptr<storage::Channel>>;

struct Receiver {
  std::unique_ptr<fabric::Fabric> fabric;
  Channels channels;
};

/// The blocks scanned by one thread.
struct Scanned {
  uint64_t blocks = 0, sum = 0;
  int64_t first_ns = 0, last_ns = 0;  // arrival of the first block, end of the last one's scan

  /// Blocks per second from the first to the last; 0 for fewer than two.
  double Rate() const {
    if (blocks < 2 || last_ns <= first_ns) return 0;
    return static_cast<double>(blocks - 1) * 1e9 / static_cast<double>(last_ns - first_ns);
  }
};

class StreamCommand : public TestbedCommand {
 public:
  StreamCommand(std::string name, std::string help, int repeat, PlottedColumns chart, uint32_t blocks)
      : TestbedCommand(std::move(name), std::move(help), repeat), blocks_(blocks), chart_(std::move(chart)) {
    chart_.y = "blocks_per_second";
    chart_.y_label = "blocks/s";
    chart_.runs = "rounds_blocks_per_second";
  }

  absl::Status Check() override {
    NAM_RETURN_IF_ERROR(TestbedCommand::Check());
    if (block_bytes_ % 8 != 0) return absl::InvalidArgumentError("--block-bytes is a multiple of 8");
    if (threads_ == 0) threads_ = simulated() ? kSimulatedThreads : 1;
    scan_ns_ = !simulated() ? 0 : scan_ns_ != 0 ? scan_ns_ : kSimulatedScanNs;
    testbed_.region_bytes = (uint64_t{blocks_} + 2) * block_bytes_ + 4096;
    return absl::OkStatus();
  }

 protected:
  std::vector<Option> WithStream(std::vector<Option> own) {
    own.push_back(Option::Within("--block-bytes", Option::Bytes{&block_bytes_}, storage::kMinBlockBytes,
                                 64 << 10, "size of a block"));
    own.push_back(
        Option::Within("--threads", &threads_, 0, kBenchThreadsMax, "per receiver; 0: the fabric's default"));
    own.push_back({"--scan-ns", &scan_ns_, "sim: computation per block; 0: as in I-Store's figures"});
    return WithTestbed(std::move(own));
  }
  /// The most receivers of a case.
  virtual uint32_t receivers() const = 0;
  virtual std::vector<StreamCase> Cases(const fabric::Capabilities& fabric) = 0;
  virtual absl::Status Round(Testbed& testbed, std::vector<Receiver>& receivers, StreamCase& of) = 0;
  virtual void Summarize(const std::vector<StreamCase>& cases, Report& report, LinePlot& plot) const = 0;

  absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) override {
    OneServer directory(testbed.server_address());
    std::vector<Receiver> receiving(receivers());
    for (Receiver& receiver : receiving) {
      NAM_ASSIGN_OR_RETURN(receiver.fabric, testbed.OpenClient());
      for (uint32_t i = 0; i < threads_; ++i) {
        NAM_ASSIGN_OR_RETURN(receiver.channels.emplace_back(),
                             storage::Channel::Open(*receiver.fabric, directory, {}));
      }
    }
    NAM_ASSIGN_OR_RETURN(set_, WriteChains(*receiving[0].channels[0], testbed.server_address(),
                                           static_cast<uint32_t>(block_bytes_), blocks_ / kBlocksPerChain));
    std::vector<StreamCase> cases = Cases(receiving[0].fabric->capabilities());
    for (int round = 0; round < repeat(); ++round) {
      for (StreamCase& each : cases) {
        if (!run.Proceed(absl::StrFormat("round %d of %d: %s, %d %s", round + 1, repeat(), each.way,
                                         each.number, chart_.x_label)))
          return absl::CancelledError("interrupted");
        NAM_RETURN_IF_ERROR(Round(testbed, receiving, each));
      }
    }
    return ReportOf(cases);
  }

  Report ReportOf(const std::vector<StreamCase>& cases) const {
    Report report;
    for (const StreamCase& each : cases) {
      Json& row = report.rows.emplace_back(Json{{chart_.series, each.way}, {chart_.x, each.number}});
      const double rate = Median(each.rates);
      row["blocks_per_second"] = std::llround(rate);
      row["gib_per_second"] = Rounded(rate * set_.block_bytes / (1 << 30));
      row["rounds_blocks_per_second"] = Rounded(each.rates);
      if (each.blocks == 0) continue;
      row["repaired_over_blocks"] =
          Rounded(static_cast<double>(each.repaired) / static_cast<double>(each.blocks));
    }
    LinePlot plot = PlotRows(report.rows, chart_);
    Summarize(cases, report, plot);
    report.charts = {SvgOf(plot)};
    return report;
  }

  static std::optional<double> RateOf(const std::vector<StreamCase>& cases, const char* way,
                                      uint32_t number) {
    for (const StreamCase& each : cases)
      if (each.way == way && each.number == number) return Median(each.rates);
    return std::nullopt;
  }
  /// Scans the blocks of `next` until it returns false.
  template <typename Next>
  absl::StatusOr<Scanned> Scan(Clock& clock, const Next& next) const {
    Scanned scanned;
    storage::BlockView block;
    while (true) {
      NAM_ASSIGN_OR_RETURN(const bool more, next(block));
      if (!more) break;
      scanned.sum += SumOf(block);
      clock.Charge(scan_ns_);
      if (scanned.blocks++ == 0) scanned.first_ns = clock.NowNs();
    }
    scanned.last_ns = clock.NowNs();
    return scanned;
  }

  uint32_t threads() const { return threads_; }

  ChainSet set_;
  uint32_t blocks_;  // of the table

 private:
  PlottedColumns chart_;  // its series and x are the columns of a case's way and number
  uint64_t block_bytes_ = 2048;
  uint32_t threads_ = 0;  // per compute server; 0: the fabric's default
  /// Charged per block; 0: the paper's processors. On real fabrics scans take real time.
  uint32_t scan_ns_ = 0;
};

class PrefetchBench final : public StreamCommand {
 public:
  PrefetchBench()
      : StreamCommand("prefetch", "the engine's block stream by the number of blocks in flight", 31,
                      {.title = "Blocks a second by blocks in flight",
                       .series = "blocks",
                       .x = "window",
                       .x_label = "blocks in flight"},
                      kPrefetchChains * kBlocksPerChain) {}
  std::vector<Option> Options() override {
    return WithStream(
        {Option::Within("--windows", &windows_, 1, 64, "only these: 1 to 64 (1,2,3,5,10,20,64)")});
  }

 private:
  uint32_t receivers() const override { return 1; }
  std::vector<StreamCase> Cases(const fabric::Capabilities& fabric) override {
    std::vector<StreamCase> cases;
    for (const uint32_t window : windows_) cases.push_back({.way = kReadWay, .number = window});
    if (!fabric.in_place) return cases;
    for (const uint32_t window : windows_) cases.push_back({.way = kInPlaceWay, .number = window});
    return cases;
  }

  /// All threads claim chains in turn until the round's time is over.
  absl::Status Round(Testbed&, std::vector<Receiver>& receivers, StreamCase& of) override {
    Receiver& self = receivers[0];
    Clock& clock = self.fabric->clock();
    const int64_t until_ns = clock.NowNs() + round_ns();
    // Gives at least one chain, however late a thread starts. Copied for each thread.
    const auto source = [&, begun = false]() mutable -> std::optional<storage::ChainStart> {
      if (begun && clock.NowNs() >= until_ns) return std::nullopt;
      begun = true;
      return set_.chains[next_chain_.fetch_add(1) % set_.chains.size()];
    };
    std::vector<Scanned> scanned(threads());
    const std::vector<fabric::Fabric*> on(threads(), self.fabric.get());
    NAM_RETURN_IF_ERROR(RunAtOnce(on, [&](size_t i) -> absl::Status {
      storage::BlockStream stream(*self.channels[i], set_.table,
                                  {.window = of.number, .in_place = of.way == kInPlaceWay}, source);
      NAM_ASSIGN_OR_RETURN(scanned[i], Scan(clock, [&](auto& block) { return stream.Next(block); }));
      return absl::OkStatus();
    }));
    double& rate = of.rates.emplace_back();
    for (const Scanned& each : scanned) {
      // Every thread has scanned whole chains, and all chains are alike.
      if (each.sum != each.blocks / kBlocksPerChain * set_.sum_per_chain)
        return absl::DataLossError("a stream delivered wrong blocks");
      rate += each.Rate();
    }
    return absl::OkStatus();
  }

  void Summarize(const std::vector<StreamCase>& cases, Report& report, LinePlot& plot) const override {
    report.remarks = "Medians; every block's integers are summed up.\n";
    const auto one = RateOf(cases, kReadWay, 1), five = RateOf(cases, kReadWay, 5),
               ten = RateOf(cases, kReadWay, 10);
    SetIf(report.summary, "window_10_over_1", RatioOf(ten, one));
    SetIf(report.summary, "window_5_over_10", RatioOf(five, ten));
    SetIf(report.summary, "in_place_over_read_window_10", RatioOf(RateOf(cases, kInPlaceWay, 10), ten));
    // The paper's text gives no rate, only that 10 are about three times as fast as 1.
    if (one) plot.paper = {{kReadWay, "I-Store, figure 7b: 3 times the rate of a window of 1", 10, 3 * *one}};
  }

  std::vector<uint32_t> windows_ = {1, 2, 3, 5, 10, 20, 64};
  std::atomic<uint64_t> next_chain_{0};
};

class Multicast final : public StreamCommand {
 public:
  Multicast()
      : StreamCommand("multicast", "blocks to many receivers, by READ and by multicast", 5,
                      {.title = "Blocks a second of each receiver",
                       .series = "way",
                       .x = "receivers",
                       .x_label = "receivers"},
                      8192) {
    testbed_.own_process = false;
  }
  std::vector<Option> Options() override {
    return WithStream(
        {Option::Within("--receivers", &receiver_counts_, 1, kReceiversMax, "only these: 1 to 16 (1,2,…,8)"),
         Option::Within("--blocks", &blocks_, kBlocksPerChain, kBlocksMax, "blocks for every receiver")});
  }
  absl::Status Check() override {
    NAM_RETURN_IF_ERROR(StreamCommand::Check());
    if (blocks_ >= kBlocksPerChain * threads()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--blocks is at least ", kBlocksPerChain * threads(), " for ", threads(), " threads"));
  }

 private:
  uint32_t receivers() const override {
    return *std::max_element(receiver_counts_.begin(), receiver_counts_.end());
  }
  std::vector<StreamCase> Cases(const fabric::Capabilities&) override {
    for (uint32_t part = 0; part < threads(); ++part) parts_.push_back(PartOf(set_, part, threads()));
    std::vector<StreamCase> cases;
    for (const char* way : {kReadWay, kMulticastWay})
      for (const uint32_t k : receiver_counts_) cases.push_back({.way = way, .number = k});
    return cases;
  }

  absl::Status Round(Testbed& testbed, std::vector<Receiver>& receivers, StreamCase& of) override {
    std::vector<storage::MulticastAddress> senders;
    const bool multicast = of.way == kMulticastWay;
    if (multicast) {
      NAM_ASSIGN_OR_RETURN(senders, testbed.server().StartMulticast(parts_, of.number, next_group_));
      next_group_ += threads();
    }
    std::vector<fabric::Fabric*> on;
    for (uint32_t i = 0; i < of.number * threads(); ++i) on.push_back(receivers[i / threads()].fabric.get());
    std::vector<Scanned> scanned(on.size());
    std::vector<uint64_t> repaired(on.size());
    absl::Status outcome = RunAtOnce(on, [&](size_t i) -> absl::Status {
      const size_t part = i % threads();
      storage::Channel& channel = *receivers[i / threads()].channels[part];
      NAM_ASSIGN_OR_RETURN(scanned[i], multicast
                                           ? Receive(channel, senders[part], part, i / threads(), repaired[i])
                                           : Read(channel, part));
      return absl::OkStatus();
    });
    if (multicast) outcome.Update(testbed.server().FinishMulticast());
    NAM_RETURN_IF_ERROR(outcome);
    double rate = 0;
    for (size_t i = 0; i < scanned.size(); ++i) {
      const size_t chains = parts_[i % threads()].chains.size();
      if (scanned[i].blocks != chains * kBlocksPerChain || scanned[i].sum != chains * set_.sum_per_chain)
        return absl::DataLossError("a stream delivered wrong blocks");
      of.blocks += multicast ? scanned[i].blocks : 0;
      of.repaired += repaired[i];
      rate += scanned[i].Rate();  // a receiver's rate is the total of its threads
    }
    of.rates.push_back(rate / of.number);
    return absl::OkStatus();
  }

  absl::StatusOr<Scanned> Read(storage::Channel& channel, size_t part) {
    size_t next = part;
    storage::BlockStream stream(channel, set_.table, {.window = kWindow},
                                [&]() -> std::optional<storage::ChainStart> {
                                  if (next >= set_.chains.size()) return std::nullopt;
                                  return set_.chains[std::exchange(next, next + threads())];
                                });
    return Scan(channel.fabric().clock(), [&](auto& block) { return stream.Next(block); });
  }

  absl::StatusOr<Scanned> Receive(storage::Channel& channel, const storage::MulticastAddress& sender,
                                  size_t part, size_t member, uint64_t& repaired) {
    NAM_ASSIGN_OR_RETURN(const auto stream,
                         storage::MulticastStream::Open(channel, {sender}, {parts_[part]},
                                                        {.member = static_cast<uint32_t>(member)}));
    auto scanned = Scan(channel.fabric().clock(), [&](auto& block) { return stream->Next(block); });
    repaired = stream->counters(0).repaired_blocks;
    return scanned;
  }

  void Summarize(const std::vector<StreamCase>& cases, Report& report, LinePlot& plot) const override {
    report.config = {{"window", kWindow}, {"blocks", set_.chains.size() * kBlocksPerChain}};
    report.remarks = "Blocks per second of each receiver: the mean of all, and medians of the rounds.\n";
    for (const uint32_t k : receiver_counts_)
      SetIf(report.summary, absl::StrCat("multicast_over_read_", k, "_receivers"),
            RatioOf(RateOf(cases, kMulticastWay, k), RateOf(cases, kReadWay, k)));
    for (const char* way : {kReadWay, kMulticastWay})
      SetIf(report.summary, absl::StrCat(way, "_8_over_1_receivers"),
            RatioOf(RateOf(cases, way, 8), RateOf(cases, way, 1)));
    constexpr char kPaper[] = "I-Store, figure 7c";
    plot.paper = {{kReadWay, kPaper, 1, 5e6}, {kReadWay, kPaper, 8, 0.8e6}, {kMulticastWay, kPaper, {}, 4e6}};
  }

  std::vector<uint32_t> receiver_counts_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<storage::MulticastTable> parts_;  // thread t of every receiver has part t
  uint32_t next_group_ = 1;
};

}  // namespace

std::unique_ptr<Command> PrefetchCommand() {
  return std::make_unique<PrefetchBench>();
}
std::unique_ptr<Command> MulticastCommand() {
  return std::make_unique<Multicast>();
}

}  // namespace nam::bench
