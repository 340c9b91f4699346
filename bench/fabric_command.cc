#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/fabric_case.h"
#include "bench/testbed.h"
#include "terminal/plot.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

/// The measurements of one case.
struct FabricFigures {
  FabricCase wanted;
  std::vector<double> rates;        // operations per second, by round
  std::vector<double> limit_rates;  // the bound's; empty if it does not cover the case
  std::vector<int64_t> latencies_ns;
};

struct FabricMeasurements {
  std::string limit;  // the bound's name; empty if there is none
  std::vector<FabricFigures> figures;
};

constexpr size_t kLatenciesMax = 1u << 18;  // per case
constexpr double kGiB = 1 << 30;
constexpr uint32_t kUsualInFlight = 16;

uint64_t BufferBytes(const FabricGrid& grid) {
  const uint64_t bytes = std::max<uint64_t>(grid.sizes.back(), 4096);
  return bytes * grid.in_flight.back() + 4096;
}

std::string Text(const FabricCase& wanted) {
  return absl::StrFormat("%s of %s, %d thread%s", Name(wanted.operation), FormatBytes(wanted.bytes),
                         wanted.threads, wanted.threads == 1 ? "" : "s");
}

/// The cases of a group and the bound take turns in every round, so that other load on the machine affects
/// all alike. Latencies are measured in separate runs.
class Measurement {
 public:
  Measurement(Testbed& testbed, Run& run, int repeat, int64_t round_ns)
      : testbed_(testbed), run_(run), repeat_(repeat), round_ns_(round_ns) {}

  absl::StatusOr<FabricMeasurements> Measure(const FabricGrid& grid) {
    const ServerAddress& server = testbed_.server_address();
    for (uint32_t i = 0; i < grid.threads.back(); ++i) {
      NAM_ASSIGN_OR_RETURN(lanes_.emplace_back(),
                           Lane::Open(testbed_.client(), server, BufferBytes(grid), uint64_t{i} << 40));
      NAM_RETURN_IF_ERROR(lanes_.back()->Touch());
    }
    bound_ = testbed_.BoundOf(lanes_);
    if (bound_.has_value()) measurements_.limit = bound_->name;
    for (const FabricCaseGroup& group : Groups(grid)) {
      NAM_RETURN_IF_ERROR(MeasureGroup(group));
    }
    return std::move(measurements_);
  }

 private:
  absl::Status MeasureGroup(const FabricCaseGroup& group) {
    if (!run_.Proceed(Text(group.front()))) return absl::CancelledError("interrupted");
    std::vector<FabricFigures> figures;
    for (const FabricCase& wanted : group) figures.push_back({.wanted = wanted});
    FabricFigures warm_up{.wanted = group.back()};
    NAM_RETURN_IF_ERROR(Round(warm_up));
    for (int round = 0; round < repeat_; ++round) {
      for (FabricFigures& each : figures) NAM_RETURN_IF_ERROR(Round(each));
      if (!run_.Proceed("")) return absl::CancelledError("interrupted");
    }
    for (FabricFigures& each : figures) NAM_RETURN_IF_ERROR(TakeLatencies(each));
    std::move(figures.begin(), figures.end(), std::back_inserter(measurements_.figures));
    return absl::OkStatus();
  }

  absl::Status Round(FabricFigures& figures) {
    const FabricCase& wanted = figures.wanted;
    NAM_ASSIGN_OR_RETURN(
        figures.rates.emplace_back(),
        SumOverLanes(
            testbed_.client(), lanes_, wanted.threads, [&](Lane& lane, size_t) -> absl::StatusOr<double> {
              NAM_ASSIGN_OR_RETURN(const Lane::Outcome outcome, lane.Run(wanted, round_ns_, nullptr));
              return static_cast<double>(outcome.operations) * 1e9 / static_cast<double>(outcome.elapsed_ns);
            }));
    if (!bound_.has_value() || !bound_->covers(wanted.operation)) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(figures.limit_rates.emplace_back(), bound_->rate(wanted, round_ns_));
    return absl::OkStatus();
  }

  absl::Status TakeLatencies(FabricFigures& figures) {
    std::vector<std::vector<int64_t>> latencies_ns(figures.wanted.threads);
    for (auto& each : latencies_ns) each.reserve(kLatenciesMax / figures.wanted.threads);
    NAM_RETURN_IF_ERROR(SumOverLanes(testbed_.client(), lanes_, figures.wanted.threads,
                                     [&](Lane& lane, size_t i) -> absl::StatusOr<double> {
                                       NAM_RETURN_IF_ERROR(
                                           lane.Run(figures.wanted, round_ns_, &latencies_ns[i]).status());
                                       return 0;
                                     })
                            .status());
    for (const auto& each : latencies_ns)
      figures.latencies_ns.insert(figures.latencies_ns.end(), each.begin(), each.end());
    std::sort(figures.latencies_ns.begin(), figures.latencies_ns.end());
    return absl::OkStatus();
  }

  Testbed& testbed_;
  Run& run_;
  const int repeat_;
  const int64_t round_ns_;
  Lanes lanes_;
  std::optional<FabricBound> bound_;
  FabricMeasurements measurements_;
};

double PercentileUs(const std::vector<int64_t>& sorted_ns, double fraction) {
  const auto index = static_cast<size_t>(fraction * static_cast<double>(sorted_ns.size() - 1));
  return static_cast<double>(sorted_ns[index]) / 1000;
}

std::optional<double> OverLimit(const FabricFigures& figures) {
  if (figures.limit_rates.empty()) return std::nullopt;
  return Median(figures.rates) / std::max(Median(figures.limit_rates), 1e-9);
}

Json FabricRow(const FabricFigures& figures) {
  const FabricCase& wanted = figures.wanted;
  const auto gib = [&](double rate) { return Rounded(rate * wanted.bytes / kGiB); };
  const double rate = Median(figures.rates);
  Json row{{"operation", Name(wanted.operation)},
           {"bytes", wanted.bytes},
           {"in_flight", wanted.in_flight},
           {"threads", wanted.threads},
           {"operations_per_second", std::llround(rate)},
           {"gib_per_second", gib(rate)}};
  row["rounds_operations_per_second"] = Rounded(figures.rates);
  if (!figures.latencies_ns.empty()) {
    row["p50_us"] = Rounded(PercentileUs(figures.latencies_ns, 0.5));
    row["p99_us"] = Rounded(PercentileUs(figures.latencies_ns, 0.99));
    row["p999_us"] = Rounded(PercentileUs(figures.latencies_ns, 0.999));
  }
  if (!figures.limit_rates.empty()) {
    const double limit = Median(figures.limit_rates);
    row["limit_operations_per_second"] = std::llround(limit);
    row["limit_gib_per_second"] = gib(limit);
    row["over_limit"] = Rounded(*OverLimit(figures));
  }
  return row;
}

/// `2KiB`, `8B`, as part of a name.
std::string SizeName(uint32_t bytes) {
  std::string text = FormatBytes(bytes);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

/// `read_64KiB_over_limit`, `cas_over_limit`, …: medians relative to the bound, with 16 in flight if
/// measured, else the most.
Json FabricSummary(const FabricMeasurements& measurements) {
  Json summary = Json::object();
  for (size_t i = 0; i < measurements.figures.size(); ++i) {
    const FabricCase& wanted = measurements.figures[i].wanted;
    const std::string key = IsAtomic(wanted.operation) ? absl::StrCat(Name(wanted.operation), "_over_limit")
                                                       : absl::StrCat(Name(wanted.operation), "_",
                                                                      SizeName(wanted.bytes), "_over_limit");
    const auto ratio = OverLimit(measurements.figures[i]);
    if (!ratio.has_value() || wanted.threads != measurements.figures.front().wanted.threads) continue;
    // Cases are ordered by operations in flight, so the last suitable one remains.
    if (wanted.in_flight <= kUsualInFlight || !summary.contains(key)) summary[key] = Rounded(*ratio);
  }
  return summary;
}

constexpr double kSpanBytesMost = uint64_t{4} << 30;
constexpr char kFigure2[] = "the redesign paper, figure 2";

/// Latencies of one operation at a time, and the rates of the most in flight.
std::vector<std::string> ChartsOf(const Json& rows) {
  Json alone = Json::array(), many = Json::array();
  uint32_t most = 0;
  for (const Json& row : rows) most = std::max(most, row.at("in_flight").get<uint32_t>());
  for (const Json& row : rows) {
    if (row.at("threads") != rows[0].at("threads")) continue;
    if (row.at("in_flight") == 1) alone.push_back(row);
    if (row.at("in_flight") == most) many.push_back(row);
  }
  LinePlot latency = PlotRows(alone, {.title = "Latency of one operation, median",
                                      .series = "operation",
                                      .x = "bytes",
                                      .y = "p50_us",
                                      .x_label = "size",
                                      .y_label = "µs"});
  LinePlot rate = PlotRows(many, {.title = absl::StrCat("Throughput with ", most, " in flight"),
                                  .series = "operation",
                                  .x = "bytes",
                                  .y = "gib_per_second",
                                  .x_label = "size",
                                  .y_label = "GiB/s"});
  latency.paper = {{"read", kFigure2, 8, 2}, {"write", kFigure2, 8, 1}, {"send", kFigure2, 8, 1}};
  latency.x_sizes = latency.log_y = rate.x_sizes = rate.log_y = true;
  return {SvgOf(latency), SvgOf(rate)};
}

class FabricBench final : public TestbedCommand {
 public:
  FabricBench()
      : TestbedCommand("fabric", "the operations of a fabric, compared to the machine without it", 31) {
    testbed_.region_bytes = uint64_t{256} << 20;  // more than caches hold
  }

  std::vector<Option> Options() override {
    return WithTestbed(
        {Option::OneOf("--operations", &operations_, {"read", "write", "cas", "faa", "send"},
                       "only these (all)"),
         {"--sizes", &sizes_, "only these: 8 to 1MiB (8,512,2KiB,64KiB,1MiB)"},
         Option::Within("--in-flight", &in_flight_, 1, kInFlightMax,
                        "operations in flight per thread, 1 to 64 (1,10,16,64)"),
         Option::Within("--threads", &threads_, 1, kBenchThreadsMax, "client threads, 1 to 64 (1)"),
         Option::Within("--span", Option::Bytes{&testbed_.region_bytes}, kBytesMax, kSpanBytesMost,
                        "size of the server's memory in use")});
  }
  absl::Status Check() override {
    NAM_ASSIGN_OR_RETURN(grid_, ParseGrid(operations_, sizes_, in_flight_, threads_));
    return TestbedCommand::Check();
  }

 private:
  absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) override {
    NAM_ASSIGN_OR_RETURN(const FabricMeasurements measurements,
                         Measurement(testbed, run, repeat(), round_ns()).Measure(grid_));
    Report report{.config = {{"span_bytes", testbed.server_address().region_bytes}},
                  .summary = FabricSummary(measurements)};
    for (const FabricFigures& figures : measurements.figures) report.rows.push_back(FabricRow(figures));
    report.charts = ChartsOf(report.rows);
    if (!measurements.limit.empty()) {
      report.config["limit"] = measurements.limit;
      report.remarks = absl::StrCat("Medians; the limit is ", measurements.limit, ", measured in turn.\n");
    }
    return report;
  }

  std::vector<std::string> operations_ = {"read", "write", "cas", "faa", "send"};
  std::vector<std::string> sizes_ = {"8", "512", "2KiB", "64KiB", "1MiB"};
  std::vector<uint32_t> in_flight_ = {1, 10, 16, 64}, threads_ = {1};
  FabricGrid grid_;
};

}  // namespace

std::unique_ptr<Command> FabricCommand() {
  return std::make_unique<FabricBench>();
}

}  // namespace nam::bench
