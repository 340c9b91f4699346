#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "bench/calibration.h"
#include "bench/report.h"
#include "optimizer/join_cost.h"
#include "partitioner/loader.h"
#include "session/result_collector.h"
#include "session/session.h"
#include "terminal/json_report.h"

namespace nam::bench {
namespace {

using catalog::FabricConstants;
using optimizer::ClusterShape;
using optimizer::JoinSide;
using optimizer::JoinWork;
using plan::JoinAlgorithm;

constexpr uint64_t kSmallRows = 1'000;
/// Enough rows that each worker fills pages of each part.
constexpr uint64_t kMediumRows = uint64_t{512} << 10;
constexpr int64_t kGroups = 1'000;
/// Keys are so sparse that no table of them is an array.
constexpr int64_t kSpread = 1'000'003;
constexpr uint64_t kShuffle = 7'919;  // a prime
constexpr double kKeyBytes = 8, kStateBytes = 16;
constexpr double kSmallParts = 64;
/// The largest plausible factor between a fitted constant and its default, in either direction: beyond it the
/// cluster was busy.
constexpr double kFarthest = 16;

const catalog::FabricConstant& ConstantOf(double FabricConstants::*field) {
  const auto table = catalog::FabricConstantTable();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& c) { return c.field == field; });
  NAM_CHECK(found != table.end(), "every constant is in the table");
  return *found;
}

/// Two tables of each of three sizes, dropped at the end.
class Tables {
 public:
  Tables(catalog::Attachment& attachment, uint64_t rows)
      : attachment_(attachment),
        prefix_(absl::StrCat("nam_calibrate_", attachment.member().value(), "_")),
        rows_(rows) {}
  ~Tables() {
    for (const std::string& name : loaded_) attachment_.catalog().DropTable(name).IgnoreError();
  }
  absl::Status Load() {
    const uint64_t medium = std::min(rows_, kMediumRows);
    for (const auto& [name, rows] :
         {std::pair("large", rows_), std::pair("other", rows_), std::pair("medium", medium),
          std::pair("middle", medium), std::pair("small", kSmallRows), std::pair("tiny", kSmallRows)})
      NAM_RETURN_IF_ERROR(LoadOne(name, rows));
    return absl::OkStatus();
  }
  std::string Name(const std::string& table) const { return prefix_ + table; }

 private:
  absl::Status LoadOne(const std::string& name, uint64_t rows) {
    const partitioner::TableSchema schema{
        .name = Name(name),
        .columns = {{"k", Type::Integer()}, {"d", Type::Integer()}, {"g", Type::Integer()}},
        .partitioning = {},
        .sort_column = ""};
    NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment_, schema, {}));
    constexpr uint64_t kBatchRows = 8'192;
    partitioner::ColumnBatch batch(3);
    for (uint64_t first = 0; first < rows; first += kBatchRows) {
      batch.Clear();
      const uint64_t end = std::min(rows, first + kBatchRows);
      for (uint64_t i = first; i < end; ++i) {
        const auto place = static_cast<int64_t>(i * kShuffle % rows);
        batch.column(0).numbers.push_back(place * kSpread);
        batch.column(1).numbers.push_back(place);
        batch.column(2).numbers.push_back(place % kGroups);
      }
      batch.set_rows(end - first);
      NAM_RETURN_IF_ERROR(loader->Append(batch));
    }
    NAM_RETURN_IF_ERROR(loader->Commit().status());
    loaded_.push_back(schema.name);
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  const std::string prefix_;
  const uint64_t rows_;
  std::vector<std::string> loaded_;
};

class RowCalibration {
 public:
  RowCalibration(catalog::Attachment& attachment, const FabricConstants& measured,
                 const CalibrationOptions& options)
      : attachment_(attachment), options_(options), tables_(attachment, options.rows) {
    cluster_.constants = measured;
  }

  absl::StatusOr<FabricConstants> Run() {
    NAM_RETURN_IF_ERROR(LookAtCluster());
    NAM_ASSIGN_OR_RETURN(session_, session::Session::Open(attachment_));
    NAM_RETURN_IF_ERROR(tables_.Load());
    const auto large = static_cast<double>(options_.rows);
    const auto medium = std::min(large, static_cast<double>(kMediumRows));
    const auto small = static_cast<double>(kSmallRows);
    const Pair two_large{"large", "other", large, large}, two_medium{"medium", "middle", medium, medium},
        large_to_small{"large", "small", large, small}, two_small{"small", "tiny", small, small};
    using F = FabricConstants;
    using J = JoinAlgorithm;
    // Each step uses the constants known so far.
    NAM_RETURN_IF_ERROR(FitJoin("stages", &F::stage_ps, J::kPipelined, Keys::kSpread, two_small));
    NAM_RETURN_IF_ERROR(FitJoin("probes", &F::probe_row_ps, J::kPipelined, Keys::kSpread, large_to_small));
    NAM_RETURN_IF_ERROR(FitJoin("tables", &F::build_row_ps, J::kPipelined, Keys::kSpread, two_large));
    NAM_RETURN_IF_ERROR(
        FitJoin("probes of arrays", &F::direct_probe_row_ps, J::kPipelined, Keys::kDense, large_to_small));
    NAM_RETURN_IF_ERROR(FitJoin("arrays", &F::direct_build_row_ps, J::kPipelined, Keys::kDense, two_large));
    NAM_RETURN_IF_ERROR(FitJoin("parts", &F::part_ps, J::kRrj, Keys::kDense, two_medium));
    NAM_RETURN_IF_ERROR(FitJoin("partitions", &F::partition_row_ps, J::kRrj, Keys::kDense, two_large));
    NAM_RETURN_IF_ERROR(FitGroups("few groups", &FabricConstants::group_row_ps, "g", kGroups));
    NAM_RETURN_IF_ERROR(FitGroups("many groups", &FabricConstants::combine_group_ps, "k", large));
    return cluster_.constants;
  }

 private:
  absl::Status LookAtCluster() {
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment_.Members(proto::ROLE_COMPUTE));
    if (servers.empty()) return absl::UnavailableError("the cluster has no compute server");
    cluster_.servers = static_cast<double>(servers.size());
    cluster_.threads = 1;
    for (const proto::Member& server : servers)
      cluster_.threads = std::max(cluster_.threads, static_cast<double>(server.threads()));
    const fabric::Kind kind = attachment_.fabric().kind();
    cluster_.overlapped = kind == fabric::Kind::kVerbs || kind == fabric::Kind::kSim;
    return absl::OkStatus();
  }

  enum class Keys { kSpread, kDense };
  struct Pair {
    const char *probe, *build;
    double probe_rows, build_rows;
  };

  JoinSide Side(double rows) const {
    return {.rows = rows,
            .row_bytes = kKeyBytes,
            .source_ps = optimizer::ScanPs(rows, kKeyBytes, cluster_.constants)};
  }

  absl::Status FitJoin(const char* doing, double FabricConstants::*field, JoinAlgorithm algorithm, Keys keys,
                       const Pair& pair) {
    const char* const key = keys == Keys::kDense ? "d" : "k";
    NAM_RETURN_IF_ERROR(Execute(absl::StrCat("set nam.join = '", plan::NameOf(algorithm), "'")));
    NAM_ASSIGN_OR_RETURN(const double actual_ms,
                         ActualMs(doing, "joins",
                                  absl::StrCat("select count(*) from ", tables_.Name(pair.probe), " a, ",
                                               tables_.Name(pair.build), " b where a.", key, " = b.", key)));
    const JoinWork work{
        .build = Side(pair.build_rows), .probe = Side(pair.probe_rows), .direct = keys == Keys::kDense};
    const optimizer::JoinParts parts{.rrj = std::max(kSmallParts, optimizer::RrjParts(work.build))};
    Fit(field, actual_ms, [&](const FabricConstants& constants) {
      ClusterShape cluster = cluster_;
      cluster.constants = constants;
      return optimizer::CostOf(algorithm, CostsOf(work, parts, cluster));
    });
    return absl::OkStatus();
  }

  absl::Status FitGroups(const char* doing, double FabricConstants::*field, const std::string& key,
                         double groups) {
    NAM_RETURN_IF_ERROR(Execute("set nam.aggregate = 'auto'"));
    NAM_ASSIGN_OR_RETURN(
        const double actual_ms,
        ActualMs(doing, "groups",
                 absl::StrCat("select count(*) from (select ", key, ", count(*) as n from ",
                              tables_.Name("large"), " group by ", key, " having count(*) >= 0) q")));
    const auto rows = static_cast<double>(options_.rows);
    const optimizer::GroupWork work{.rows = rows,
                                    .groups = groups,
                                    .state_bytes = kStateBytes,
                                    .source_ps = optimizer::ScanPs(rows, kKeyBytes, cluster_.constants)};
    Fit(field, actual_ms, [&](const FabricConstants& constants) {
      ClusterShape cluster = cluster_;
      cluster.constants = constants;
      return CostsOf(work, cluster).rdma_ms;
    });
    return absl::OkStatus();
  }

  void Fit(double FabricConstants::*field, double actual_ms,
           const std::function<double(const FabricConstants&)>& estimate) {
    const double usual = FabricConstants().*field;
    cluster_.constants.*field =
        std::clamp(FittedConstant(cluster_.constants, ConstantOf(field), actual_ms, estimate),
                   usual / kFarthest, usual * kFarthest);
  }

  absl::Status Execute(const std::string& statement) { return session_->Execute(statement).status(); }

  /// The median of EXPLAIN ANALYZE's times, after a warm-up run.
  absl::StatusOr<double> ActualMs(const char* doing, const char* choices, const std::string& query) {
    if (!options_.proceed(doing)) return absl::CancelledError("interrupted");
    std::vector<double> times_ms;
    for (int round = 0; round <= options_.rounds; ++round) {
      NAM_ASSIGN_OR_RETURN(const session::ResultSet result,
                           session_->Execute("explain (analyze, format json) " + query));
      const Json plan = Json::parse(result.rows.at(0).at(0).text, nullptr, false);
      const Json::json_pointer actual(absl::StrCat("/0/", choices, "/0/actual_ms"));
      if (!plan.contains(actual)) return absl::InternalError("EXPLAIN does not say what a query took");
      if (round > 0) times_ms.push_back(plan.at(actual).get<double>());
    }
    return Median(times_ms);
  }

  catalog::Attachment& attachment_;
  const CalibrationOptions& options_;
  ClusterShape cluster_;
  Tables tables_;
  std::unique_ptr<session::Session> session_;
};

}  // namespace

double FittedConstant(const FabricConstants& constants, const catalog::FabricConstant& constant,
                      double actual, const std::function<double(const FabricConstants&)>& estimate) {
  const double value = constants.*constant.field;
  FabricConstants doubled = constants;
  doubled.*constant.field = 2 * value;
  const double now = estimate(constants), slope = (estimate(doubled) - now) / value;
  if (!(slope > 0)) return value;
  return std::clamp(value + (actual - now) / slope, constant.least, constant.most);
}

absl::StatusOr<FabricConstants> FitRowConstants(catalog::Attachment& attachment,
                                                const FabricConstants& measured,
                                                const CalibrationOptions& options) {
  CalibrationOptions with = options;
  while (true) {
    absl::StatusOr<FabricConstants> fitted = RowCalibration(attachment, measured, with).Run();
    if (!absl::IsResourceExhausted(fitted.status()) || with.rows / 2 < kMediumRows) return fitted;
    with.rows /= 2;
  }
}

}  // namespace nam::bench
