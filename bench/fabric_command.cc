#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/fabric_bench.h"
#include "bench/testbed_command.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

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
                                      .x_label = "bytes",
                                      .y_label = "µs"});
  LinePlot rate = PlotRows(many, {.title = absl::StrCat("Throughput with ", most, " in flight"),
                                  .series = "operation",
                                  .x = "bytes",
                                  .y = "gib_per_second",
                                  .x_label = "bytes",
                                  .y_label = "GiB/s"});
  latency.paper = {{"read", kFigure2, 8, 2}, {"write", kFigure2, 8, 1}, {"send", kFigure2, 8, 1}};
  latency.log_x = latency.log_y = rate.log_x = rate.log_y = true;
  return {SvgOf(latency), SvgOf(rate)};
}

class FabricBench final : public TestbedCommand {
 public:
  FabricBench()
      : TestbedCommand("fabric", "the operations of a fabric, compared to the machine without it", 31) {
    testbed_.region_bytes = uint64_t{256} << 20;  // more than caches hold
  }

  std::vector<Option> Options() override {
    return WithTestbed({{"--operations", &operations_, "only these: read,write,cas,faa,send"},
                        {"--sizes", &sizes_, "only these: 8 to 1MiB (8,512,2KiB,64KiB,1MiB)"},
                        {"--in-flight",
                         &in_flight_,
                         "operations in flight per thread, 1 to 64 (1,10,16,64)",
                         {{1, kInFlightMax}}},
                        {"--threads", &threads_, "client threads, 1 to 64 (1)", {{1, kBenchThreadsMax}}},
                        {"--span",
                         Option::Bytes{&testbed_.region_bytes},
                         "size of the server's memory in use",
                         {{kBytesMax, kSpanBytesMost}}}});
  }
  absl::Status Check() override {
    NAM_ASSIGN_OR_RETURN(grid_, ParseGrid(operations_, sizes_, in_flight_, threads_));
    return TestbedCommand::Check();
  }

 private:
  absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) override {
    NAM_ASSIGN_OR_RETURN(
        const FabricMeasurements measurements,
        MeasureFabric(testbed, grid_,
                      {.repeat = repeat(), .round_ns = round_ns(), .proceed = [&](const std::string& doing) {
                         return run.Proceed(doing);
                       }}));
    Report report{.config = {{"span_bytes", testbed.server().address().region_bytes}},
                  .rows = FabricRows(measurements),
                  .summary = FabricSummary(measurements),
                  .compared = {.settings = {"operation", "bytes", "in_flight", "threads"},
                               .figures = {"operations_per_second", "over_limit"}}};
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
