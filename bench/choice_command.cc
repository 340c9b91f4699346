#include "bench/choice_command.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/algorithm_command.h"
#include "bench/algorithm_work.h"
#include "bench/calibration.h"
#include "bench/choice_points.h"
#include "bench/choice_report.h"
#include "bench/join_command.h"
#include "bench/row_calibration.h"
#include "bench/surroundings.h"
#include "bench/tuple_count.h"
#include "catalog/fabric_constants.h"
#include "fabric/fabric.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/progress_line.h"
#include "terminal/table_printer.h"

namespace nam::bench {
namespace {

constexpr int kPointsMax = 10'000;
constexpr uint64_t kTuplesMax = uint64_t{1} << 28;
constexpr char kAuto[] = "auto";
constexpr uint64_t kMiB = uint64_t{1} << 20;

/// The parsed options.
struct Plan {
  OutputFormat format = OutputFormat::kTable;
  std::vector<ChoicePoint> points;
  std::vector<Algorithm> algorithms;  // includes auto
  AlgorithmBenchOptions cluster;
  MemoryNeed need;
};

/// A forced join algorithm that streams where possible, like auto.
absl::StatusOr<Algorithm> ForcedJoin(const std::string& name) {
  NAM_ASSIGN_OR_RETURN(Algorithm algorithm, name == kAuto ? JoinAlgorithm(name) : ForcedJoinAlgorithm(name));
  std::erase_if(algorithm.settings, [](const auto& setting) { return setting.first == "nam.exchange"; });
  return algorithm;
}

absl::StatusOr<Plan> MakePlan(const ChoiceBenchOptions& options) {
  Plan plan;
  plan.cluster = {.algorithms = options.algorithms,
                  .memory_servers = options.memory_servers,
                  .compute_servers = options.compute_servers,
                  .threads = options.threads,
                  .seed = options.seed,
                  .repeat = options.repeat,
                  .format = options.format};
  if (options.fabrics.empty()) return absl::InvalidArgumentError("--fabrics names none");
  for (const std::string& fabric : options.fabrics) {
    plan.cluster.fabric = fabric;
    if (plan.cluster.simulated()) return absl::InvalidArgumentError("--fabrics are real ones");
    NAM_RETURN_IF_ERROR(fabric::ParseRealKind(fabric).status());
    NAM_RETURN_IF_ERROR(Validate(plan.cluster));
  }
  NAM_ASSIGN_OR_RETURN(plan.format, ParseOutputFormat(options.format));
  if (options.points < 1 || options.points > kPointsMax)
    return absl::InvalidArgumentError(absl::StrCat("--points is 1 to ", kPointsMax));
  NAM_ASSIGN_OR_RETURN(const auto least, ParseCounts("--tuples-min", {options.tuples_min}, kTuplesMax));
  NAM_ASSIGN_OR_RETURN(const auto most, ParseCounts("--tuples-max", {options.tuples_max}, kTuplesMax));
  if (least[0] > most[0]) return absl::InvalidArgumentError("--tuples-min is above --tuples-max");
  for (const std::string& name : options.algorithms) {
    if (name == kAuto) return absl::InvalidArgumentError("--algorithms are forced ones; auto always runs");
    NAM_ASSIGN_OR_RETURN(plan.algorithms.emplace_back(), ForcedJoin(name));
  }
  NAM_ASSIGN_OR_RETURN(plan.algorithms.emplace_back(), ForcedJoin(kAuto));
  plan.points = DrawChoicePoints({.points = static_cast<uint32_t>(options.points),
                                  .seed = options.seed,
                                  .tuples_min = least[0],
                                  .tuples_max = most[0],
                                  .fabrics = options.fabrics});
  plan.need = JoinNeed(most[0]);
  return plan;
}

/// The algorithm in EXPLAIN's JSON; empty if there is none.
std::string ChosenIn(const Json& plan) {
  const Json::json_pointer chosen("/0/joins/0/algorithm");
  return plan.contains(chosen) ? plan.at(chosen).get<std::string>() : "";
}

/// The estimates in EXPLAIN's JSON, by possible algorithm.
std::map<std::string, double> EstimatesIn(const Json& plan) {
  const Json::json_pointer estimates("/0/joins/0/estimated_ms");
  std::map<std::string, double> estimated_ms;
  if (!plan.contains(estimates)) return estimated_ms;
  for (const auto& [name, ms] : plan.at(estimates).items()) estimated_ms[name] = ms.get<double>();
  return estimated_ms;
}

/// All points of one fabric, in a separate cluster that is calibrated first.
class ChoiceWork final : public ClusterWork {
 public:
  ChoiceWork(const Plan& plan, bool calibrates, std::vector<ChoicePoint> points, ClusterOptions cluster)
      : calibrates_(calibrates),
        points_(std::move(points)),
        cluster_(std::move(cluster)),
        workload_(WorkloadOf(plan, points_)),
        work_({}, workload_,
              {.algorithms = plan.algorithms,
               .repeat = plan.cluster.repeat,
               .threads = ThreadsOf(plan.cluster),
               .query_mib_max = std::max<uint64_t>(4096, plan.need.query_bytes / kMiB),
               .explained = kAuto}) {}

  absl::Status Run() override {
    NAM_ASSIGN_OR_RETURN(const auto attachment, AttachToCluster(cluster_));
    if (calibrates_) NAM_RETURN_IF_ERROR(Calibrate(*attachment));
    return work_.RunOn(*attachment);
  }
  void Cancel() override {
    cancelled_ = true;
    work_.Cancel();
  }

  // After Run:
  std::vector<ChoiceResult> results() const {
    std::vector<ChoiceResult> results;
    for (const AlgorithmWork::Case& each : work_.cases())
      results.push_back({points_[each.index], ChosenIn(each.plan), each.contenders, EstimatesIn(each.plan)});
    return results;
  }
  const std::vector<AlgorithmWork::Skipped>& skipped() const { return work_.skipped(); }

 private:
  static JoinWorkload::Options WorkloadOf(const Plan& plan, const std::vector<ChoicePoint>& points) {
    JoinWorkload::Options options{
        .seed = plan.cluster.seed, .threads = ThreadsOf(plan.cluster), .loop = false};
    for (const ChoicePoint& point : points) options.cases.push_back(point.join);
    return options;
  }
  absl::Status Calibrate(catalog::Attachment& attachment) {
    ProgressLine progress;
    const CalibrationOptions how{.proceed = [&](const std::string& doing) {
      progress.Show(absl::StrCat("bench choice: measuring ", doing));
      return !cancelled_.load();
    }};
    NAM_ASSIGN_OR_RETURN(catalog::FabricConstants constants, MeasureFabricConstants(attachment, {}, how));
    NAM_ASSIGN_OR_RETURN(constants, FitRowConstants(attachment, constants, {.calibration = how}));
    NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
    return attachment.catalog().Calibrate(catalog::ToProto(cluster.fabric(), constants));
  }

  const bool calibrates_;
  const std::vector<ChoicePoint> points_;
  const ClusterOptions cluster_;
  std::atomic<bool> cancelled_ = false;
  JoinWorkload workload_;
  AlgorithmWork work_;
};

struct Measured {
  std::vector<ChoiceResult> results;
  Json skipped = Json::object();
};

absl::Status MeasureOn(const std::string& fabric, const ChoiceBenchOptions& options, const Plan& plan,
                       StopSignals& stop, Measured& measured) {
  std::vector<ChoicePoint> points;
  std::copy_if(plan.points.begin(), plan.points.end(), std::back_inserter(points),
               [&](const ChoicePoint& point) { return point.fabric == fabric; });
  if (points.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const std::string directory, MakeLargeDirectory());
  const ServerMemory memory = MemoryOf(plan.cluster, plan.need);
  auto cluster = LocalCluster::Start({.directory = directory,
                                      .name = "bench",
                                      .fabric = fabric,
                                      .memory_servers = options.memory_servers,
                                      .compute_servers = options.compute_servers,
                                      .memory_bytes = memory.memory_bytes,
                                      .scratch_bytes = memory.scratch_bytes,
                                      .threads = ThreadsOf(plan.cluster) / options.compute_servers},
                                     stop.fd());
  absl::Status status = cluster.status();
  if (status.ok()) {
    ChoiceWork work(plan, !options.no_calibration, points,
                    {.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()});
    status = RunClusterWork(**cluster, work, stop, directory);
    for (ChoiceResult& result : work.results()) measured.results.push_back(std::move(result));
    for (const AlgorithmWork::Skipped& each : work.skipped()) measured.skipped[each.algorithm] = each.why;
    cluster->reset();
  }
  RemoveTree(directory);
  return status;
}

Json ConfigJson(const ChoiceBenchOptions& options, const Plan& plan, const Measured& measured, double load) {
  return {{"points", options.points},
          {"seed", options.seed},
          {"tuples_min", options.tuples_min},
          {"tuples_max", options.tuples_max},
          {"fabrics", options.fabrics},
          {"algorithms", options.algorithms},
          {"memory_servers", options.memory_servers},
          {"compute_servers", options.compute_servers},
          {"threads", ThreadsOf(plan.cluster)},
          {"repeat", options.repeat},
          {"calibrated", !options.no_calibration},
          {"skipped", measured.skipped},
          {"load_average", load}};
}

int Conclude(const ChoiceBenchOptions& options, const Plan& plan, const Measured& measured, double load) {
  const bool json = plan.format == OutputFormat::kJson;
  const Json rows = ChoiceRows(measured.results, /*estimates=*/json);
  Json summary = ChoiceSummary(measured.results);
  summary["equal_answers"] = AllEqual(measured.results);
  if (json) {
    std::cout << JsonReport{.command = "bench choice",
                            .config = ConfigJson(options, plan, measured, load),
                            .rows = rows,
                            .summary = summary}
                     .ToString();
  } else {
    std::cout << Render(TableOf(rows), {.format = plan.format, .footer = false});
    if (plan.format == OutputFormat::kTable) {
      for (const auto& [name, value] : summary.items()) std::cout << name << ": " << value << "\n";
      std::cout << absl::StrFormat(
          "Medians of %d rounds in milliseconds, %d threads on %d compute servers; points of seed %d.\n",
          options.repeat, ThreadsOf(plan.cluster), options.compute_servers, options.seed);
      for (const auto& [name, why] : measured.skipped.items())
        std::cout << "Left out: " << name << ", as this engine refuses it: " << why << ".\n";
    }
  }
  std::cout.flush();
  return AllEqual(measured.results) ? kExitOk : kExitCheckFailed;
}

}  // namespace

int RunChoiceBench(const ChoiceBenchOptions& options) {
  const absl::StatusOr<Plan> plan = MakePlan(options);
  if (!plan.ok()) return Refuse(plan.status());
  if (const absl::Status enough = CheckNeed(plan->need); !enough.ok()) return Refuse(enough);
  const double load = LoadAverage();
  WarnOfLoad(load);
  StopSignals stop;  // before any thread
  Measured measured;
  for (const std::string& fabric : options.fabrics) {
    const absl::Status status = MeasureOn(fabric, options, *plan, stop, measured);
    if (!status.ok()) return ReportFailure(status);
  }
  return Conclude(options, *plan, measured, load);
}

}  // namespace nam::bench
