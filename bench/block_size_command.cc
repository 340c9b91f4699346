#include "bench/block_size_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/query_report.h"
#include "bench/query_work.h"
#include "fabric/fabric.h"
#include "localcluster/cluster_work.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "partitioner/loader.h"
#include "storage/block.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"
#include "workload/benchmark_queries.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

constexpr uint64_t kSizes[] = {16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
constexpr int kTurnsMax = 1'000;
constexpr Contender kOurs[] = {Contender::kInPlace, Contender::kCopy};

struct Plan {
  OutputFormat format = OutputFormat::kTable;
  std::vector<uint64_t> sizes;
  std::vector<BenchmarkQuery> queries;
  DataSource source;
  int threads_per_server = 1;
};

absl::StatusOr<Plan> MakePlan(const BlockSizeBenchOptions& options) {
  Plan plan;
  NAM_ASSIGN_OR_RETURN(plan.format, ParseOutputFormat(options.format));
  NAM_ASSIGN_OR_RETURN(plan.queries, SelectQueries(SsbBenchmark(), options.queries, {}));
  NAM_RETURN_IF_ERROR(fabric::ParseRealKind(options.fabric).status());
  if (options.rounds < 1 || options.rounds > kTurnsMax || options.repeat < 1 || options.repeat > kTurnsMax)
    return absl::InvalidArgumentError(absl::StrCat("--rounds and --repeat are 1 to ", kTurnsMax));
  for (const std::string& text : options.sizes) {
    NAM_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
    if (bytes == 0 || bytes > storage::kMaxBlockBytes)
      return absl::InvalidArgumentError(absl::StrCat("--sizes are 1 to ", storage::kMaxBlockBytes, " bytes"));
    plan.sizes.push_back(bytes);
  }
  if (plan.sizes.empty()) plan.sizes.assign(std::begin(kSizes), std::end(kSizes));
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  plan.source = {.scale_factor = options.scale_factor, .seed = options.seed, .threads = processors};
  NAM_RETURN_IF_ERROR(Validate(plan.source));
  NAM_RETURN_IF_ERROR(Validate(LocalClusterOptions{.memory_servers = options.memory_servers,
                                                   .compute_servers = options.compute_servers}));
  plan.threads_per_server =
      std::max(1, (options.threads > 0 ? options.threads : processors) / options.compute_servers);
  return plan;
}

/// The measurements of one size, over all rounds.
struct SizeTimes {
  uint64_t block_bytes = 0;
  std::vector<QueryTimes> queries;
  std::vector<double> load_rows_per_s;

  std::optional<double> GeomeanMs(Contender contender) const {
    std::vector<double> medians;
    for (const QueryTimes& query : queries) {
      if (const auto median = query.median_ms(contender)) medians.push_back(*median);
    }
    return GeometricMean(medians);
  }
};

class BlockSizeWork final : public ClusterWork {
 public:
  BlockSizeWork(const BlockSizeBenchOptions& options, const Plan& plan, ClusterOptions cluster)
      : options_(options), plan_(plan), cluster_(std::move(cluster)) {
    for (const uint64_t size : plan.sizes) times_.push_back({.block_bytes = size});
  }

  absl::Status Run() override {
    for (int round = 0; round < options_.rounds; ++round) {
      for (SizeTimes& times : times_) NAM_RETURN_IF_ERROR(Take(times));
    }
    return absl::OkStatus();
  }
  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (turn_ != nullptr) turn_->Cancel();
  }

  const std::vector<SizeTimes>& times() const { return times_; }
  bool same_rows() const { return same_rows_; }

 private:
  absl::Status Take(SizeTimes& times) {
    QueryWork turn({.benchmark = &SsbBenchmark(),
                    .cluster = cluster_,
                    .source = plan_.source,
                    .queries = plan_.queries,
                    .repeat = options_.repeat,
                    .block_bytes = times.block_bytes,
                    .replace = true,
                    .loop = false});
    if (!SetTurn(&turn)) return absl::CancelledError("interrupted");
    const absl::Status status = turn.Run();
    SetTurn(nullptr);
    NAM_RETURN_IF_ERROR(status);
    times.load_rows_per_s.push_back(turn.load_rows_per_second());
    if (times.queries.empty()) times.queries.resize(turn.times().size());
    if (answers_.empty()) answers_ = turn.answers();
    for (size_t q = 0; q < turn.times().size(); ++q) {
      Add(turn.times()[q], times.queries[q]);
      same_rows_ = same_rows_ && SameRows(turn.answers()[q], answers_[q]);
    }
    return absl::OkStatus();
  }

  void Add(const QueryTimes& turn, QueryTimes& all) {
    same_rows_ = same_rows_ && turn.wrong.empty();
    all.id = turn.id;
    for (size_t c = 0; c < turn.times_ms.size(); ++c)
      all.times_ms[c].insert(all.times_ms[c].end(), turn.times_ms[c].begin(), turn.times_ms[c].end());
  }

  bool SetTurn(QueryWork* turn) {
    const std::lock_guard lock(mutex_);
    turn_ = turn;
    return !cancelled_;
  }

  const BlockSizeBenchOptions& options_;
  const Plan& plan_;
  const ClusterOptions cluster_;
  std::vector<SizeTimes> times_;
  std::vector<QueryWork::Rows> answers_;  // by query, from the first turn
  bool same_rows_ = true;
  std::mutex mutex_;
  QueryWork* turn_ = nullptr;  // the current turn
  bool cancelled_ = false;
};

/// How much slower the loader's own size is than the best one; empty if it was not measured.
std::optional<double> BestOverDefault(const std::vector<SizeTimes>& times, Contender contender) {
  std::optional<double> best, own;
  for (const SizeTimes& size : times) {
    const auto ms = size.GeomeanMs(contender);
    if (!ms.has_value()) continue;
    if (!best.has_value() || *ms < *best) best = ms;
    if (size.block_bytes == partitioner::LoadOptions().block_bytes) own = ms;
  }
  return own.has_value() ? std::optional(*best / *own) : std::nullopt;
}

double Rounded(double value) {
  return std::round(value * 1000) / 1000;
}

Json RowOf(const SizeTimes& size) {
  Json row{{"block_bytes", size.block_bytes}, {"load_rows_per_s", std::round(Median(size.load_rows_per_s))}};
  for (const Contender contender : kOurs) {
    if (const auto ms = size.GeomeanMs(contender))
      row[absl::StrCat(Name(contender), "_ms_geomean")] = Rounded(*ms);
  }
  for (const QueryTimes& query : size.queries) {
    for (const Contender contender : kOurs) {
      if (const auto ms = query.median_ms(contender))
        row["queries"][query.id][absl::StrCat(Name(contender), "_ms")] = Rounded(*ms);
    }
  }
  return row;
}

Json SummaryOf(const BlockSizeWork& work) {
  Json summary{{"default_block_bytes", partitioner::LoadOptions().block_bytes},
               {"same_rows", work.same_rows()}};
  for (const Contender contender : kOurs) {
    if (const auto ratio = BestOverDefault(work.times(), contender))
      summary[absl::StrCat(Name(contender), "_best_over_default")] = Rounded(*ratio);
  }
  return summary;
}

void PrintTable(const Plan& plan, const BlockSizeWork& work) {
  session::ResultSet table;
  table.columns = {{"block_bytes", Type::String()},
                   {"in_place_ms", Type::String()},
                   {"copy_ms", Type::String()},
                   {"load_rows_per_s", Type::Integer()}};
  const auto text = [](const std::optional<double>& ms) {
    return Value::String(ms.has_value() ? absl::StrFormat("%.2f", *ms) : "-");
  };
  for (const SizeTimes& size : work.times()) {
    table.rows.push_back({Value::String(FormatBytes(size.block_bytes)),
                          text(size.GeomeanMs(Contender::kInPlace)), text(size.GeomeanMs(Contender::kCopy)),
                          Value::Integer(std::llround(Median(size.load_rows_per_s)))});
  }
  std::cout << Render(table, {.format = plan.format, .footer = false});
  if (plan.format != OutputFormat::kTable) return;
  std::cout << "Geometric means of the queries' medians.\n";
  const Json summary = SummaryOf(work);
  for (const auto& [name, value] : summary.items()) std::cout << name << ": " << value << "\n";
}

int Conclude(const BlockSizeBenchOptions& options, const Plan& plan, const BlockSizeWork& work) {
  if (plan.format == OutputFormat::kJson) {
    JsonReport report{.command = "bench blocks"};
    report.config = {{"scale_factor", options.scale_factor},
                     {"seed", options.seed},
                     {"rounds", options.rounds},
                     {"repeat", options.repeat},
                     {"fabric", options.fabric},
                     {"memory_servers", options.memory_servers},
                     {"compute_servers", options.compute_servers},
                     {"threads", plan.threads_per_server * options.compute_servers}};
    for (const SizeTimes& size : work.times()) report.rows.push_back(RowOf(size));
    report.summary = SummaryOf(work);
    std::cout << report.ToString();
  } else {
    PrintTable(plan, work);
  }
  std::cout.flush();
  return work.same_rows() ? kExitOk : kExitCheckFailed;
}

int RunIn(const std::string& directory, const BlockSizeBenchOptions& options, const Plan& plan) {
  StopSignals stop;
  const auto cluster = LocalCluster::Start(
      {.directory = directory,
       .name = "bench",
       .fabric = options.fabric,
       .memory_servers = options.memory_servers,
       .compute_servers = options.compute_servers,
       // A table is replaced only once the new one is complete.
       .memory_bytes = 2 * MemoryForTables(SsbBenchmark().bytes_per_scale_factor * options.scale_factor,
                                           options.memory_servers),
       .threads = plan.threads_per_server},
      stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  BlockSizeWork work(options, plan,
                     {.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()});
  const absl::Status status = RunClusterWork(**cluster, work, stop, directory);
  return status.ok() ? Conclude(options, plan, work) : ReportFailure(status);
}

}  // namespace

int RunBlockSizeBench(const BlockSizeBenchOptions& options) {
  const auto plan = MakePlan(options);
  if (!plan.ok()) {
    ReportFailure(plan.status());
    return kExitUsage;
  }
  const auto directory = CreateTemporaryDirectory("nam-bench-");
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunIn(*directory, options, *plan);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::bench
