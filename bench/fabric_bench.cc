#include "bench/fabric_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "bench/report.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

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

class Measurement {
 public:
  Measurement(Testbed& testbed, const FabricMeasureOptions& options) : testbed_(testbed), options_(options) {}

  absl::StatusOr<FabricMeasurements> Run(const FabricGrid& grid) {
    const ServerAddress& server = testbed_.server().address();
    for (uint32_t i = 0; i < grid.threads.back(); ++i) {
      NAM_ASSIGN_OR_RETURN(lanes_.emplace_back(),
                           Lane::Open(testbed_.client(), server, BufferBytes(grid), uint64_t{i} << 40));
      NAM_RETURN_IF_ERROR(lanes_.back()->Touch());
    }
    bound_ = testbed_.MakeBound(lanes_);
    if (bound_ != nullptr) measurements_.limit = bound_->name();
    for (const FabricCaseGroup& group : Groups(grid)) {
      NAM_RETURN_IF_ERROR(MeasureGroup(group));
    }
    return std::move(measurements_);
  }

 private:
  absl::Status MeasureGroup(const FabricCaseGroup& group) {
    if (options_.proceed && !options_.proceed(Text(group.front())))
      return absl::CancelledError("interrupted");
    std::vector<FabricFigures> figures;
    for (const FabricCase& wanted : group) figures.push_back({.wanted = wanted});
    FabricFigures warm_up{.wanted = group.back()};
    NAM_RETURN_IF_ERROR(Round(warm_up));
    for (int round = 0; round < options_.repeat; ++round) {
      for (FabricFigures& each : figures) NAM_RETURN_IF_ERROR(Round(each));
      if (options_.proceed && !options_.proceed("")) return absl::CancelledError("interrupted");
    }
    for (FabricFigures& each : figures) NAM_RETURN_IF_ERROR(TakeLatencies(each));
    std::move(figures.begin(), figures.end(), std::back_inserter(measurements_.figures));
    return absl::OkStatus();
  }

  absl::Status Round(FabricFigures& figures) {
    const FabricCase& wanted = figures.wanted;
    NAM_ASSIGN_OR_RETURN(const double rate, SumOverLanes(testbed_.client(), lanes_, wanted.threads,
                                                         [&](Lane& lane, size_t) -> absl::StatusOr<double> {
                                                           return OurRate(lane, figures);
                                                         }));
    figures.rates.push_back(rate);
    if (bound_ == nullptr || !bound_->Covers(wanted)) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(figures.limit_rates.emplace_back(), bound_->Rate(wanted, options_.round_ns));
    return absl::OkStatus();
  }

  absl::StatusOr<double> OurRate(Lane& lane, FabricFigures& figures) {
    NAM_ASSIGN_OR_RETURN(const Lane::Outcome outcome, lane.Run(figures.wanted, options_.round_ns, nullptr));
    return static_cast<double>(outcome.operations) * 1e9 / static_cast<double>(outcome.elapsed_ns);
  }

  absl::Status TakeLatencies(FabricFigures& figures) {
    std::vector<std::vector<int64_t>> latencies_ns(figures.wanted.threads);
    for (auto& each : latencies_ns) each.reserve(kLatenciesMax / figures.wanted.threads);
    NAM_RETURN_IF_ERROR(
        SumOverLanes(testbed_.client(), lanes_, figures.wanted.threads,
                     [&](Lane& lane, size_t i) -> absl::StatusOr<double> {
                       NAM_RETURN_IF_ERROR(
                           lane.Run(figures.wanted, options_.round_ns, &latencies_ns[i]).status());
                       return 0;
                     })
            .status());
    for (const auto& each : latencies_ns)
      figures.latencies_ns.insert(figures.latencies_ns.end(), each.begin(), each.end());
    std::sort(figures.latencies_ns.begin(), figures.latencies_ns.end());
    return absl::OkStatus();
  }

  Testbed& testbed_;
  const FabricMeasureOptions& options_;
  Lanes lanes_;
  std::unique_ptr<FabricBound> bound_;
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

Json RowOf(const FabricFigures& figures) {
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

const FabricFigures* Find(const FabricMeasurements& measurements, Operation operation, uint32_t bytes,
                          uint32_t in_flight) {
  for (const FabricFigures& figures : measurements.figures) {
    const FabricCase& wanted = figures.wanted;
    if (wanted.operation == operation && wanted.bytes == bytes && wanted.in_flight == in_flight)
      return &figures;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<FabricMeasurements> MeasureFabric(Testbed& testbed, const FabricGrid& grid,
                                                 const FabricMeasureOptions& options) {
  return Measurement(testbed, options).Run(grid);
}

Json FabricRows(const FabricMeasurements& measurements) {
  Json rows = Json::array();
  for (const FabricFigures& figures : measurements.figures) rows.push_back(RowOf(figures));
  return rows;
}

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
  const FabricFigures* ten = Find(measurements, Operation::kRead, 2048, 10);
  const FabricFigures* one = Find(measurements, Operation::kRead, 2048, 1);
  if (ten != nullptr && one != nullptr)
    summary["window_10_over_1"] = Rounded(Median(ten->rates) / std::max(Median(one->rates), 1e-9));
  return summary;
}

}  // namespace nam::bench
