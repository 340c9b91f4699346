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
  /// Says what comes next; false ends the work with CANCELLED.
  std::function<bool(const std::string& doing)> proceed;
};

/// What was measured of one case.
struct FabricFigures {
  FabricCase wanted;
  std::vector<double> rates;        // operations per second, one a round
  std::vector<double> limit_rates;  // of the bound; empty if it does not cover the case
  std::vector<int64_t> latencies_ns;
  uint64_t datagrams_sent = 0;
  uint64_t datagrams_received = 0;
};

struct FabricMeasurements {
  std::string limit;  // what the bound is; empty if there is none
  std::vector<FabricFigures> figures;
  std::string multicast_left_out;  // why; empty if it was measured or not asked for
};

/// The cases of a group and the bound take turns in every round, so that other work on the machine meets
/// all of them alike. Latencies are taken in runs of their own.
absl::StatusOr<FabricMeasurements> MeasureFabric(Testbed& testbed, const FabricGrid& grid,
                                                 const FabricMeasureOptions& options);

Json FabricRows(const FabricMeasurements& measurements);
/// `read_64KiB_over_limit`, `cas_over_limit`, …: medians over the bound's, 16 in flight if that was
/// measured, else the most. `window_10_over_1`: READs of 2 KiB.
Json FabricSummary(const FabricMeasurements& measurements);

}  // namespace nam::bench
