#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/stream_bench.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

constexpr uint32_t kChains = 512;

struct WindowFigures {
  uint32_t window = 0;
  bool in_place = false;
  std::vector<double> rates;  // blocks per second, by round
};

class Prefetch final : public StreamCommand {
 public:
  Prefetch() : StreamCommand("prefetch", "the engine's block stream by the number of blocks in flight", 31) {}

  std::vector<Option> Options() override {
    return WithStream(
        {Option::Within("--windows", &windows_, 1, 64, "only these: 1 to 64 (1,2,3,5,10,20,64)")});
  }
  absl::Status Check() override {
    NAM_RETURN_IF_ERROR(StreamCommand::Check());
    ReserveBlocks(uint64_t{kChains} * kBlocksPerChain);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) override {
    OneServer directory(testbed.server_address());
    NAM_ASSIGN_OR_RETURN(const Channels channels, OpenChannels(testbed.client(), directory, threads()));
    NAM_ASSIGN_OR_RETURN(set_,
                         WriteChains(*channels.front(), testbed.server_address(), block_bytes(), kChains));
    std::vector<WindowFigures> figures;
    for (const uint32_t window : windows_) figures.push_back({.window = window});
    if (testbed.client().capabilities().in_place) {
      for (const uint32_t window : windows_) figures.push_back({.window = window, .in_place = true});
    }
    for (int round = 0; round < repeat(); ++round) {
      if (!run.Proceed(absl::StrCat("round ", round + 1, " of ", repeat())))
        return absl::CancelledError("interrupted");
      for (WindowFigures& each : figures) {
        NAM_ASSIGN_OR_RETURN(each.rates.emplace_back(), Round(testbed.client(), channels, each));
      }
    }
    return ReportOf(figures);
  }

  /// All threads claim chains in turn until the round's time is over.
  absl::StatusOr<double> Round(fabric::Fabric& fabric, const Channels& channels,
                               const WindowFigures& figures) {
    Clock& clock = fabric.clock();
    const int64_t until_ns = clock.NowNs() + round_ns();
    // Gives at least one chain, however late a thread starts. Copied for each thread.
    const auto source = [&, begun = false]() mutable -> std::optional<storage::ChainStart> {
      if (begun && clock.NowNs() >= until_ns) return std::nullopt;
      begun = true;
      return set_.chains[next_chain_.fetch_add(1) % set_.chains.size()];
    };
    std::vector<Scanned> scanned(channels.size());
    std::vector<Task> tasks;
    for (size_t i = 0; i < channels.size(); ++i) {
      tasks.push_back(
          {&fabric, [&, i]() -> absl::Status {
             storage::BlockStream stream(*channels[i], set_.table,
                                         {.window = figures.window, .in_place = figures.in_place}, source);
             NAM_ASSIGN_OR_RETURN(scanned[i], Scan(clock, scan_ns(), [&](storage::BlockView& block) {
                                    return stream.Next(block);
                                  }));
             return absl::OkStatus();
           }});
    }
    NAM_RETURN_IF_ERROR(RunAtOnce(tasks));
    double rate = 0;
    for (const Scanned& each : scanned) {
      // Every thread has scanned whole chains, and all chains are alike.
      if (each.sum != each.blocks / kBlocksPerChain * set_.sum_per_chain)
        return absl::DataLossError("a stream delivered wrong blocks");
      rate += each.Rate();
    }
    return rate;
  }

  Report ReportOf(const std::vector<WindowFigures>& figures) const {
    Report report{.remarks = "Medians; every block's integers are summed up.\n"};
    const auto rate_of = [&](uint32_t window, bool in_place) -> std::optional<double> {
      for (const WindowFigures& each : figures)
        if (each.window == window && each.in_place == in_place) return Median(each.rates);
      return std::nullopt;
    };
    for (const WindowFigures& each : figures) {
      Json& row = report.rows.emplace_back(
          Json{{"blocks", each.in_place ? "in place" : "read"}, {"window", each.window}});
      AddRates(each.rates, set_.block_bytes, row);
    }
    SetIf(report.summary, "window_10_over_1", RatioOf(rate_of(10, false), rate_of(1, false)));
    SetIf(report.summary, "window_5_over_10", RatioOf(rate_of(5, false), rate_of(10, false)));
    SetIf(report.summary, "in_place_over_read_window_10", RatioOf(rate_of(10, true), rate_of(10, false)));
    LinePlot plot = PlotRows(report.rows, {.title = "Blocks a second by blocks in flight",
                                           .series = "blocks",
                                           .x = "window",
                                           .y = "blocks_per_second",
                                           .x_label = "blocks in flight",
                                           .y_label = "blocks/s",
                                           .runs = "rounds_blocks_per_second"});
    // The paper's text gives no rate, only that 10 are about three times as fast as 1.
    if (const auto one = rate_of(1, false))
      plot.paper = {{"read", "I-Store, figure 7b: 3 times the rate of a window of 1", 10, 3 * *one}};
    report.charts = {SvgOf(plot)};
    return report;
  }

  std::vector<uint32_t> windows_ = {1, 2, 3, 5, 10, 20, 64};
  ChainSet set_;
  std::atomic<uint64_t> next_chain_{0};
};

}  // namespace

std::unique_ptr<Command> PrefetchCommand() {
  return std::make_unique<Prefetch>();
}

}  // namespace nam::bench
