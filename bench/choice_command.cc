#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/algorithm_command.h"
#include "bench/algorithm_work.h"
#include "bench/calibration.h"
#include "bench/choice_report.h"
#include "bench/commands.h"
#include "bench/tuple_table.h"
#include "catalog/fabric_constants.h"

namespace nam::bench {
namespace {

constexpr uint64_t kPointTuplesMax = uint64_t{1} << 28;

/// Those that can be forced; they stream over the fabric where that is possible, as auto does.
std::vector<Algorithm> ForcedJoins() {
  std::vector<Algorithm> forced = JoinAlgorithms();
  for (Algorithm& algorithm : forced)
    std::erase_if(algorithm.settings, [](const auto& setting) { return setting.first == "nam.exchange"; });
  std::erase_if(forced, [](const Algorithm& algorithm) {
    return algorithm.name == kAuto || algorithm.name.ends_with("_fabric");
  });
  return forced;
}

/// The optimizer's choice for random joins, compared with each algorithm that it could have chosen. The
/// points of a fabric run in a cluster of their own, which is calibrated first.
class Choice final : public Command {
 public:
  Choice() : Command("choice", "the optimizer's choice compared to each algorithm, for random joins") {}

  std::vector<Option> Options() override {
    return {
        Option::Within("--points", &points_wanted_, 1, 10'000, "number of random joins"),
        {"--seed", &seed_, "seed of the points and the data"},
        {"--tuples-min", &tuples_min_, "minimum per relation: 64K, 1M or 1000"},
        {"--tuples-max", &tuples_max_, "maximum per relation"},
        Option::OneOf("--fabrics", &fabrics_, {"shm", "tcp", "verbs"},
                      "fabrics, in turn: shm, tcp, verbs (shm,tcp)"),
        Option::OneOf("--algorithms", &algorithm_names_, NamesOf(ForcedJoins()),
                      "in addition to auto (pipelined,rrj,rdma_ghj,ghj,ghj_bloom)"),
        {"--memory-servers", &memory_servers_, "number of memory servers"},
        {"--compute-servers", &compute_servers_, "number of compute servers"},
        Option::Within("--threads", &threads_, 0, 256, "total of all compute servers; 0: one per processor"),
        Option::Within("--repeat", &repeat_, 1, 1'000, "rounds after a warm-up; figures are medians in ms"),
        {"--no-calibration", &no_calibration_, "plan with default constants instead of this machine's"}};
  }

  absl::Status Check() override {
    NAM_RETURN_IF_ERROR(nam::Validate(
        LocalClusterOptions{.memory_servers = memory_servers_, .compute_servers = compute_servers_}));
    threads_ = ThreadsOf(threads_, compute_servers_);
    NAM_ASSIGN_OR_RETURN(const auto least, ParseCounts("--tuples-min", {tuples_min_}, kPointTuplesMax));
    NAM_ASSIGN_OR_RETURN(const auto most, ParseCounts("--tuples-max", {tuples_max_}, kPointTuplesMax));
    if (least[0] > most[0]) return absl::InvalidArgumentError("--tuples-min is above --tuples-max");
    algorithms_ = Named(ForcedJoins(), algorithm_names_);
    algorithms_.push_back(JoinAlgorithms().back());
    points_ = DrawChoicePoints({.points = static_cast<uint32_t>(points_wanted_),
                                .seed = seed_,
                                .tuples_min = least[0],
                                .tuples_max = most[0],
                                .fabrics = fabrics_});
    need_ = JoinNeed(most[0]);
    return CheckNeed(need_);
  }

  absl::StatusOr<Report> Measure(Run& run) override {
    Report report{.config = {{"calibrated", !no_calibration_}, {"skipped", Json::object()}},
                  .remarks = absl::StrFormat(
                      "Medians of %d rounds in milliseconds, %d threads on %d compute servers.\n", repeat_,
                      threads_, compute_servers_)};
    std::vector<ChoiceResult> results;
    for (const std::string& fabric : fabrics_) NAM_RETURN_IF_ERROR(MeasureOn(fabric, run, results, report));
    report.rows = ChoiceRows(results);
    report.summary = ChoiceSummary(results);
    report.correct = std::all_of(results.begin(), results.end(),
                                 [](const ChoiceResult& each) { return each.figures.equal(); });
    report.summary["equal_answers"] = report.correct;
    return report;
  }

 private:
  absl::Status MeasureOn(const std::string& fabric, Run& run, std::vector<ChoiceResult>& results,
                         Report& report) {
    std::vector<ChoicePoint> points;
    std::copy_if(points_.begin(), points_.end(), std::back_inserter(points),
                 [&](const ChoicePoint& point) { return point.fabric == fabric; });
    if (points.empty()) return absl::OkStatus();
    std::vector<AlgorithmCase> cases;
    for (const ChoicePoint& point : points) cases.push_back(CaseOf(point.join, seed_, threads_));
    AlgorithmWork work(run, cases,
                       {.algorithms = algorithms_,
                        .repeat = repeat_,
                        .threads = threads_,
                        .query_mib_max = need_.query_mib_max(),
                        .explained = kAuto});
    const auto measure = [&](catalog::Attachment& attachment, const ClusterOptions&) -> absl::Status {
      if (!no_calibration_) NAM_RETURN_IF_ERROR(Calibrate(attachment, run));
      return work.RunOn(attachment);
    };
    NAM_RETURN_IF_ERROR(
        run.InCluster(ClusterFor(need_, fabric, memory_servers_, compute_servers_, threads_), measure));
    for (size_t i = 0; i < points.size(); ++i) results.push_back(ResultOf(points[i], work.figures()[i]));
    for (const AlgorithmWork::Skipped& each : work.skipped()) {
      report.config["skipped"][each.algorithm] = each.why;
      absl::StrAppend(&report.remarks, "Left out: ", each.algorithm, ": ", each.why, ".\n");
    }
    return absl::OkStatus();
  }

  static absl::Status Calibrate(catalog::Attachment& attachment, Run& run) {
    const CalibrationOptions how{
        .proceed = [&](const std::string& doing) { return run.Proceed(absl::StrCat("measuring ", doing)); }};
    NAM_ASSIGN_OR_RETURN(catalog::FabricConstants constants, MeasureFabricConstants(attachment, {}, how));
    NAM_ASSIGN_OR_RETURN(constants, FitRowConstants(attachment, constants, how));
    NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
    run.progress().Clear();
    return attachment.catalog().Calibrate(catalog::ToProto(cluster.fabric(), constants));
  }

  int points_wanted_ = 60;
  uint64_t seed_ = 1;
  std::string tuples_min_ = "64K", tuples_max_ = "32M";  // per relation
  std::vector<std::string> fabrics_ = {"shm", "tcp"};
  std::vector<std::string> algorithm_names_ = {"pipelined", "rrj", "rdma_ghj", "ghj", "ghj_bloom"};
  int memory_servers_ = 2, compute_servers_ = 2;
  int threads_ = 0;  // the compute servers' total; 0: one per processor
  int repeat_ = 3;
  bool no_calibration_ = false;
  // Checked:
  std::vector<ChoicePoint> points_;
  std::vector<Algorithm> algorithms_;  // includes auto
  MemoryNeed need_;
};

}  // namespace

std::unique_ptr<Command> ChoiceCommand() {
  return std::make_unique<Choice>();
}

}  // namespace nam::bench
