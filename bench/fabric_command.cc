#include "bench/fabric_command.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/fabric_bench.h"
#include "bench/fabric_case.h"
#include "bench/testbed_command.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr char kCommand[] = "bench fabric";
constexpr uint64_t kSpanBytesMax = uint64_t{4} << 30;

template <typename T>
std::vector<T> Or(const std::vector<T>& chosen, std::vector<T> usual) {
  return chosen.empty() ? std::move(usual) : chosen;
}

absl::StatusOr<FabricGrid> MakeGrid(const FabricBenchOptions& options) {
  if (options.span_bytes < kBytesMax || options.span_bytes > kSpanBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--span is ", FormatBytes(kBytesMax), " to ", FormatBytes(kSpanBytesMax)));
  }
  return ParseGrid(Or(options.operations, {"read", "write", "cas", "faa", "send", "multicast"}),
                   Or(options.sizes, {"8", "512", "2KiB", "64KiB", "1MiB"}),
                   Or(options.in_flight, {1, 10, 16, 64}), Or(options.threads, {1}));
}

absl::StatusOr<TestbedReport> Measure(Testbed& testbed, const FabricGrid& grid, const TestbedPlan& plan,
                                      const Proceed& proceed) {
  NAM_ASSIGN_OR_RETURN(
      const FabricMeasurements measurements,
      MeasureFabric(testbed, grid, {.repeat = plan.repeat, .round_ns = plan.round_ns, .proceed = proceed}));
  TestbedReport report{.config = {{"span_bytes", testbed.server().address().region_bytes}},
                       .rows = FabricRows(measurements),
                       .summary = FabricSummary(measurements),
                       .compared = {.settings = {"operation", "bytes", "in_flight", "threads"},
                                    .figures = {"operations_per_second", "over_limit"}}};
  if (!measurements.limit.empty()) {
    report.config["limit"] = measurements.limit;
    report.remarks = absl::StrCat("Medians; the limit is ", measurements.limit, ", measured in turn.\n");
  }
  if (!measurements.multicast_left_out.empty()) {
    report.config["multicast_left_out"] = measurements.multicast_left_out;
    absl::StrAppend(&report.remarks, "No multicast: ", measurements.multicast_left_out, "\n");
  }
  return report;
}

}  // namespace

int RunFabricBench(const FabricBenchOptions& options) {
  const auto grid = MakeGrid(options);
  if (!grid.ok()) return RefuseOptions(grid.status());
  auto plan = MakeTestbedPlan(kCommand, options.testbed);
  if (!plan.ok()) return RefuseOptions(plan.status());
  plan->testbed.region_bytes = options.span_bytes;
  return RunTestbedCommand(kCommand, *plan, [&](Testbed& testbed, const Proceed& proceed) {
    return Measure(testbed, *grid, *plan, proceed);
  });
}

}  // namespace nam::bench
