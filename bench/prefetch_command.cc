#include "bench/prefetch_command.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/query_report.h"
#include "bench/stream_bench.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr char kCommand[] = "bench prefetch";
constexpr uint32_t kChains = 512;
constexpr double kGiB = 1 << 30;

struct WindowFigures {
  uint32_t window = 0;
  bool in_place = false;
  std::vector<double> rates;  // blocks per second, by round
};

class PrefetchBench {
 public:
  PrefetchBench(Testbed& testbed, const StreamPlan& plan) : testbed_(testbed), plan_(plan) {}

  absl::StatusOr<TestbedReport> Run(const std::vector<uint32_t>& windows, const Proceed& proceed) {
    OneServer directory(testbed_.server().address());
    NAM_ASSIGN_OR_RETURN(channels_, OpenChannels(testbed_.client(), directory, plan_.threads));
    NAM_ASSIGN_OR_RETURN(
        set_, WriteChains(*channels_.front(), testbed_.server().address(), plan_.block_bytes, kChains));
    std::vector<WindowFigures> figures;
    for (const uint32_t window : windows) figures.push_back({.window = window});
    if (testbed_.client().capabilities().in_place) {
      for (const uint32_t window : windows) figures.push_back({.window = window, .in_place = true});
    }
    for (int round = 0; round < plan_.testbed.repeat; ++round) {
      if (!proceed(absl::StrCat("round ", round + 1, " of ", plan_.testbed.repeat)))
        return absl::CancelledError("interrupted");
      for (WindowFigures& each : figures) {
        NAM_ASSIGN_OR_RETURN(each.rates.emplace_back(), Round(each));
      }
    }
    return Report(figures);
  }

 private:
  /// All threads claim chains in turn until the round's time is over.
  absl::StatusOr<double> Round(const WindowFigures& figures) {
    Clock& clock = testbed_.client().clock();
    const int64_t until_ns = clock.NowNs() + plan_.testbed.round_ns;
    // Gives at least one chain, however late a thread starts. Copied for each thread.
    const auto source = [&, begun = false]() mutable -> std::optional<storage::ChainStart> {
      if (begun && clock.NowNs() >= until_ns) return std::nullopt;
      begun = true;
      return set_.chains[next_chain_.fetch_add(1) % set_.chains.size()];
    };
    std::vector<Scanned> scanned(channels_.size());
    std::vector<Task> tasks;
    for (size_t i = 0; i < channels_.size(); ++i) {
      tasks.push_back(
          {&testbed_.client(), [&, i]() -> absl::Status {
             storage::BlockStream stream(*channels_[i], set_.table,
                                         {.window = figures.window, .in_place = figures.in_place}, source);
             NAM_ASSIGN_OR_RETURN(scanned[i], Scan(clock, plan_.scan_ns, [&](storage::BlockView& block) {
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

  TestbedReport Report(const std::vector<WindowFigures>& figures) const {
    TestbedReport report{.config = StreamConfig(plan_),
                         .rows = Json::array(),
                         .compared = {.settings = {"blocks", "window"}, .figures = {"blocks_per_second"}},
                         .remarks = "Medians; every block's integers are summed up.\n",
                         .plot = PlottedColumns{.title = "Blocks a second by blocks in flight",
                                                .series = "blocks",
                                                .x = "window",
                                                .y = "blocks_per_second",
                                                .x_label = "blocks in flight",
                                                .y_label = "blocks/s"}};
    const auto rate_of = [&](uint32_t window, bool in_place) -> std::optional<double> {
      for (const WindowFigures& each : figures)
        if (each.window == window && each.in_place == in_place) return Median(each.rates);
      return std::nullopt;
    };
    const auto summarize = [&](const char* key, std::optional<double> over, std::optional<double> under) {
      if (over && under) report.summary[key] = Rounded(*over / std::max(*under, 1e-9));
    };
    for (const WindowFigures& each : figures) {
      const double rate = Median(each.rates);
      report.rows.push_back({{"blocks", each.in_place ? "in place" : "read"},
                             {"window", each.window},
                             {"blocks_per_second", std::llround(rate)},
                             {"gib_per_second", Rounded(rate * set_.block_bytes / kGiB)}});
    }
    report.summary = Json::object();
    summarize("window_10_over_1", rate_of(10, false), rate_of(1, false));
    summarize("window_5_over_10", rate_of(5, false), rate_of(10, false));
    summarize("in_place_over_read_window_10", rate_of(10, true), rate_of(10, false));
    return report;
  }

  Testbed& testbed_;
  const StreamPlan& plan_;
  Channels channels_;
  ChainSet set_;
  std::atomic<uint64_t> next_chain_{0};
};

absl::Status CheckWindows(const std::vector<uint32_t>& windows) {
  for (const uint32_t window : windows)
    if (window < 1 || window > 64)
      return absl::InvalidArgumentError(absl::StrCat("--windows is 1 to 64, not ", window));
  return absl::OkStatus();
}

}  // namespace

int RunPrefetchBench(const PrefetchBenchOptions& options) {
  std::vector<uint32_t> windows = options.windows;
  if (windows.empty()) windows = {1, 2, 3, 5, 10, 20, 64};
  if (const absl::Status checked = CheckWindows(windows); !checked.ok()) return RefuseOptions(checked);
  auto plan = MakeStreamPlan(kCommand, options.stream);
  if (!plan.ok()) return RefuseOptions(plan.status());
  plan->testbed.testbed.region_bytes = (uint64_t{kChains} * kBlocksPerChain + 2) * plan->block_bytes + 4096;
  return RunTestbedCommand(kCommand, plan->testbed, [&](Testbed& testbed, const Proceed& proceed) {
    return PrefetchBench(testbed, *plan).Run(windows, proceed);
  });
}

}  // namespace nam::bench
