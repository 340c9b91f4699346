#include "bench/aggregate_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "bench/aggregate_workload.h"
#include "bench/figure8.h"
#include "bench/tuple_count.h"
#include "localcluster/connect.h"

namespace nam::bench {
namespace {

constexpr uint64_t kTuplesMax = uint64_t{1} << 30;
constexpr int kSimulatedThreads = 10;  // per server, as in figure 8b

AggregateBenchOptions WithDefaults(AggregateBenchOptions options) {
  const bool simulated = options.common.simulated();
  options.common = WithDefaults(std::move(options.common), kSimulatedThreads);
  if (options.tuples.empty()) options.tuples = {simulated ? CountLabel(kFigure8Tuples) : "128M"};
  if (options.groups.empty()) options.groups = {"1", "1K", "1M", "16M", "64M"};
  return options;
}

/// Estimates the memory for grouping `tuples` tuples.
MemoryNeed NeedOf(uint64_t tuples, uint64_t groups, const AggregateBenchOptions& options) {
  constexpr uint64_t kTupleBytes = 8;
  constexpr uint64_t kScratchBytes = 48;  // a state per tuple at worst: 40 sufficed, 32 did not
  constexpr uint64_t kQueryBytes = 16;
  constexpr uint64_t kDuckDbGroupBytes = 72;
  // Tables of this many cases exist at a time: memory is freed within a second of DROP TABLE, and a virtual
  // case takes less.
  const uint64_t tables = options.common.simulated() ? 5 : 2;
  return {
      .table_bytes = tuples * kTupleBytes * 9 / 8 * tables,
      .scratch_bytes = tuples * kScratchBytes,
      .query_bytes = groups * kQueryBytes,
      .own_bytes = tuples * kTupleBytes * 2,  // loading holds them twice
      .peer_bytes = options.common.peer == "duckdb" ? tuples * kTupleBytes + groups * kDuckDbGroupBytes : 0};
}

/// The cases are all pairs of a size and a number of groups. A remark lists those with more groups than
/// tuples.
absl::StatusOr<std::vector<AggregateCase>> CasesOf(const std::vector<uint64_t>& sizes,
                                                   const std::vector<uint64_t>& numbers,
                                                   std::vector<std::string>& remarks) {
  std::vector<AggregateCase> cases;
  for (const uint64_t tuples : sizes) {
    std::vector<std::string> skipped;
    for (const uint64_t groups : numbers) {
      if (groups <= tuples) {
        cases.push_back({tuples, groups});
      } else {
        skipped.push_back(CountLabel(groups));
      }
    }
    if (!skipped.empty()) {
      remarks.push_back(absl::StrCat("Skipped: ", absl::StrJoin(skipped, ", "),
                                     " groups, which are more than ", CountLabel(tuples), " tuples."));
    }
  }
  if (!cases.empty()) return cases;
  return absl::InvalidArgumentError(
      absl::StrCat("--groups=", CountLabel(numbers[0]), " are more than --tuples=", CountLabel(sizes[0])));
}

struct Plan {
  AlgorithmBench bench;
  AggregateWorkload::Options workload;
};

absl::StatusOr<Plan> MakePlan(const AggregateBenchOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options.common));
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                       ParseCounts("--tuples", options.tuples, kTuplesMax));
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers,
                       ParseCounts("--groups", options.groups, kTuplesMax));
  if (options.keys != "dense" && options.keys != "spread")
    return absl::InvalidArgumentError(absl::StrCat("--keys=", options.keys, ": dense or spread"));
  std::vector<std::string> remarks;
  NAM_ASSIGN_OR_RETURN(std::vector<AggregateCase> cases, CasesOf(sizes, numbers, remarks));
  if (options.common.simulated() && *std::min_element(sizes.begin(), sizes.end()) < kFigure8Tuples)
    remarks.push_back(BelowFigure8());
  uint64_t most_groups = 0;
  for (const AggregateCase& each : cases) most_groups = std::max(most_groups, each.groups);
  const uint64_t most_tuples = *std::max_element(sizes.begin(), sizes.end());
  Plan plan{.bench = {.command = "bench aggregate",
                      .title = "8-byte tuples in groups",
                      .config = {{"tuples", sizes},
                                 {"groups", numbers},
                                 {"keys", options.keys},
                                 {"algorithms", options.common.algorithms}},
                      .remarks = std::move(remarks),
                      .need = NeedOf(most_tuples, most_groups, options),
                      .summarize = options.common.simulated() ? Figure8bSummary : AggregateSummary},
            .workload = {.cases = std::move(cases),
                         .dense = options.keys == "dense",
                         .seed = options.common.seed,
                         .threads = HostThreadsOf(options.common)}};
  for (const std::string& name : options.common.algorithms) {
    NAM_ASSIGN_OR_RETURN(plan.bench.algorithms.emplace_back(), AggregateAlgorithm(name));
  }
  return plan;
}

}  // namespace

int RunAggregateBench(const AggregateBenchOptions& given) {
  const AggregateBenchOptions options = WithDefaults(given);
  const absl::StatusOr<Plan> plan = MakePlan(options);
  if (!plan.ok()) return Refuse(plan.status());
  AggregateWorkload workload(plan->workload);
  return RunAlgorithmBench(options.common, plan->bench, workload);
}

}  // namespace nam::bench
