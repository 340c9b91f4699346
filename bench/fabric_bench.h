#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fabric_case.h"
#include "bench/testbed.h"
#include "terminal/json_report.h"

namespace nam::bench {

struct FabricMeasureOptions {
  int repeat = 31;
  int64_t round_ns = 4'000'000;
  /// Called before each case; false ends the work with CANCELLED.
  std::function<bool(const std::string& doing)> proceed;
};

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

/// The cases of a group and the bound take turns in every round, so that other load on the machine affects
/// all alike. Latencies are measured in separate runs.
absl::StatusOr<FabricMeasurements> MeasureFabric(Testbed& testbed, const FabricGrid& grid,
                                                 const FabricMeasureOptions& options);

Json FabricRows(const FabricMeasurements& measurements);
/// `read_64KiB_over_limit`, `cas_over_limit`, …: medians relative to the bound, with 16 in flight if
/// measured, else the most. `window_10_over_1`: READs of 2 KiB.
Json FabricSummary(const FabricMeasurements& measurements);

}  // namespace nam::bench
