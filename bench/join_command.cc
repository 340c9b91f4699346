#include "bench/join_command.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "bench/figure8.h"
#include "bench/join_workload.h"
#include "bench/tuple_count.h"
#include "localcluster/connect.h"

namespace nam::bench {
namespace {

constexpr uint64_t kTuplesMax = uint64_t{1} << 30;  // keys of S that are not in R must be SQL integers, too
constexpr double kZipfMax = 1.25;
constexpr int kSimulatedThreads = 8;  // per server, as in figure 8a

JoinBenchOptions WithDefaults(JoinBenchOptions options) {
  const bool simulated = options.common.simulated();
  options.common = WithDefaults(std::move(options.common), kSimulatedThreads);
  if (options.tuples.empty()) options.tuples = {simulated ? CountLabel(kFigure8Tuples) : "16M"};
  if (options.selectivity.empty())
    options.selectivity = simulated ? std::vector<double>{0.25, 0.5, 0.75, 1} : std::vector<double>{1};
  if (options.zipf.empty()) options.zipf = simulated ? std::vector<double>{0} : std::vector<double>{0, 1};
  options.no_loop |= simulated;
  return options;
}

constexpr uint64_t kTupleBytes = 8;

MemoryNeed NeedOf(uint64_t tuples, const JoinBenchOptions& options) {
  constexpr uint64_t kDuckDbBytes = 28;  // the tables, and one hash table over R
  MemoryNeed need = JoinNeed(tuples);
  const uint64_t passes = RadixJoinLoop::ChoosePasses(tuples, {}).size();
  if (!options.no_loop) need.own_bytes += 2 * tuples * kTupleBytes * passes;
  if (options.common.peer == "duckdb") need.peer_bytes = 2 * tuples * kDuckDbBytes;
  return need;
}

absl::Status CheckCases(const JoinBenchOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options.common));
  if (options.selectivity.empty() || options.zipf.empty())
    return absl::InvalidArgumentError("--selectivity and --zipf name one number at least");
  for (const double selectivity : options.selectivity) {
    if (!(selectivity > 0 && selectivity <= 1))
      return absl::InvalidArgumentError("--selectivity is above 0, and 1 at most");
  }
  for (const double zipf : options.zipf) {
    if (!(zipf >= 0 && zipf <= kZipfMax))
      return absl::InvalidArgumentError("--zipf is 0 to 1.25; 0 is uniform");
  }
  return absl::OkStatus();
}

struct Plan {
  AlgorithmBench bench;
  JoinWorkload::Options workload;
};

absl::StatusOr<Plan> MakePlan(const JoinBenchOptions& options) {
  NAM_RETURN_IF_ERROR(CheckCases(options));
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                       ParseCounts("--tuples", options.tuples, kTuplesMax));
  Plan plan{
      .bench = {.command = "bench join",
                .title = "Joins of two relations of 8-byte tuples",
                .config = {{"tuples", sizes},
                           {"selectivity", options.selectivity},
                           {"zipf", options.zipf},
                           {"algorithms", options.common.algorithms}},
                .need = NeedOf(*std::max_element(sizes.begin(), sizes.end()), options),
                .summarize = options.common.simulated() ? Figure8aSummary : JoinSummary},
      .workload = {
          .seed = options.common.seed, .threads = HostThreadsOf(options.common), .loop = !options.no_loop}};
  for (const std::string& name : options.common.algorithms) {
    NAM_ASSIGN_OR_RETURN(plan.bench.algorithms.emplace_back(), JoinAlgorithm(name));
  }
  if (options.common.simulated() && *std::min_element(sizes.begin(), sizes.end()) < kFigure8Tuples)
    plan.bench.remarks.push_back(BelowFigure8());
  for (const uint64_t tuples : sizes) {
    for (const double selectivity : options.selectivity) {
      for (const double zipf : options.zipf) plan.workload.cases.push_back({tuples, selectivity, zipf});
    }
  }
  return plan;
}

}  // namespace

MemoryNeed JoinNeed(uint64_t tuples) {
  constexpr uint64_t kScratchBytes = 32;  // 12 sufficed; slabs of 64 MiB are rarely full
  constexpr uint64_t kQueryBytes = 16;    // hash tables of whole build sides, in each server
  const uint64_t both = 2 * tuples;
  return {.table_bytes = both * kTupleBytes * 9 / 4,
          .scratch_bytes = both * kScratchBytes,
          .query_bytes = both * kQueryBytes,
          .own_bytes = both * kTupleBytes};
}

int RunJoinBench(const JoinBenchOptions& given) {
  const JoinBenchOptions options = WithDefaults(given);
  const absl::StatusOr<Plan> plan = MakePlan(options);
  if (!plan.ok()) return Refuse(plan.status());
  JoinWorkload workload(plan->workload);
  return RunAlgorithmBench(options.common, plan->bench, workload);
}

}  // namespace nam::bench
