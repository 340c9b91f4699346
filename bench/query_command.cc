#include "bench/query_command.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/benchmark_duckdb.h"
#include "bench/query_report.h"
#include "bench/query_work.h"
#include "bench/ssb_loop.h"
#include "bench/surroundings.h"
#include "fabric/fabric.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
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

namespace nam::bench {
namespace {

constexpr int kRepeatMax = 10'000;
constexpr int kThreadsMax = 1'024;
constexpr int kLoaderThreadsMax = 16;

/// The parsed options.
struct Plan {
  OutputFormat format = OutputFormat::kTable;
  DataSource source;
  std::vector<BenchmarkQuery> queries;
  std::optional<OlderReport> older;
  bool duckdb = false;
  bool loop = false;
  int threads_per_server = 1;
  int threads = 2;  // actual threads of both sides
  double load_average = 0;
};

int Refuse(const absl::Status& status) {
  ReportFailure(status);
  return kExitUsage;
}

absl::Status CheckNumbers(const QueryBenchOptions& options) {
  if (options.repeat < 1 || options.repeat > kRepeatMax)
    return absl::InvalidArgumentError(absl::StrCat("--repeat is 1 to ", kRepeatMax));
  if (options.threads < 0 || options.threads > kThreadsMax)
    return absl::InvalidArgumentError(absl::StrCat("--threads is 0 to ", kThreadsMax));
  if (options.peer != "none" && options.peer != "duckdb")
    return absl::InvalidArgumentError(
        absl::StrCat("there is no peer \"", options.peer, "\"; --peer is none or duckdb"));
  NAM_RETURN_IF_ERROR(fabric::ParseRealKind(options.fabric).status());
  if (options.block_bytes > storage::kMaxBlockBytes)
    return absl::InvalidArgumentError(absl::StrCat("--block-bytes is at most ", storage::kMaxBlockBytes));
  return Validate(LocalClusterOptions{.memory_servers = options.memory_servers,
                                      .compute_servers = options.compute_servers});
}

QueryParameters ParametersOf(const QueryBenchOptions& options) {
  QueryParameters parameters{.scale_factor = options.scale_factor};
  if (options.parameters_seed != 0) parameters.seed = options.parameters_seed;
  return parameters;
}

absl::StatusOr<Plan> MakePlan(const Benchmark& benchmark, const QueryBenchOptions& options) {
  NAM_RETURN_IF_ERROR(CheckNumbers(options));
  Plan plan;
  NAM_ASSIGN_OR_RETURN(plan.format, ParseOutputFormat(options.format));
  NAM_ASSIGN_OR_RETURN(plan.queries, SelectQueries(benchmark, options.queries, ParametersOf(options)));
  if (!options.compare.empty()) {
    NAM_ASSIGN_OR_RETURN(plan.older, ReadOlderReport(benchmark.name, options.compare));
  }
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  plan.source = {.scale_factor = options.scale_factor,
                 .seed = options.seed,
                 .threads = std::min(processors, kLoaderThreadsMax)};
  NAM_RETURN_IF_ERROR(Validate(plan.source));
  const int wanted = options.threads > 0 ? options.threads : processors;
  plan.threads_per_server = std::max(1, wanted / options.compute_servers);
  plan.threads = plan.threads_per_server * options.compute_servers;
  plan.duckdb = options.peer == "duckdb";
  plan.loop = !options.no_loop && benchmark.name == SsbBenchmark().name &&
              SsbLoop::Fits(options.scale_factor) &&
              std::any_of(plan.queries.begin(), plan.queries.end(),
                          [](const BenchmarkQuery& query) { return SsbLoop::Has(query.id); });
  plan.load_average = LoadAverage();
  return plan;
}

Json ConfigJson(const QueryBenchOptions& options, const Plan& plan, const QueryWork& work,
                const BenchmarkDuckDb* duckdb) {
  Json config{{"scale_factor", options.scale_factor},
              {"seed", options.seed},
              {"repeat", options.repeat},
              {"fabric", options.fabric},
              {"memory_servers", options.memory_servers},
              {"compute_servers", options.compute_servers},
              {"block_bytes",
               options.block_bytes != 0 ? options.block_bytes : partitioner::LoadOptions().block_bytes},
              {"threads", plan.threads},
              {"peer", options.peer}};
  if (duckdb != nullptr) {
    config["duckdb"] = {{"version", duckdb->version()},
                        {"threads", plan.threads},
                        {"order", options.peer_sorted ? "as ours is clustered" : "as generated"},
                        {"memory_bytes", options.peer_memory_bytes},
                        {"tables", options.peer_file ? "in a file" : "in memory"},
                        {"load_seconds", work.duckdb_load_seconds()}};
  }
  config["load_average"] = plan.load_average;
  return config;
}

void PrintTables(const Benchmark& benchmark, const Plan& plan, const QueryWork& work,
                 const QuerySummary& summary, const std::optional<Comparison>& comparison,
                 const Json& config) {
  std::cout << Render(TimesTable(work.times()), {.format = plan.format, .footer = false});
  if (plan.format != OutputFormat::kTable) return;
  const auto line = [](const char* what, const std::optional<double>& value) {
    if (value.has_value()) std::cout << absl::StrFormat("%s: %.2f\n", what, *value);
  };
  std::cout << "Medians in milliseconds; ratios above 1 are in our favour.\n";
  line("DuckDB over ours in place, geometric mean", summary.speedup_over_duckdb_in_place_geomean);
  line("DuckDB over ours in place, least", summary.speedup_over_duckdb_in_place_min);
  line("DuckDB over ours by READ, geometric mean", summary.speedup_over_duckdb_copy_geomean);
  line("hand-written loop over ours, least", summary.loop_over_ours_min);
  line("READs of the same bytes over ours by READ, geometric mean", summary.read_over_copy_geomean);
  line("READs of the same bytes over ours by READ, least", summary.read_over_copy_min);
  std::cout << "loading " << benchmark.largest_table << ": "
            << FormatCount(static_cast<uint64_t>(summary.load_rows_per_second)) << " rows/s\n";
  const Json host = HostJson();
  std::cout << absl::StrFormat("host: %d x %s, load average at the start %.2f; %d threads on each side\n",
                               host.value("processors", 0), host.value("processor", "unknown processor"),
                               plan.load_average, plan.threads);
  std::cout << summary.correct_queries << " of " << summary.queries << " queries with equal rows\n";
  if (!comparison.has_value()) return;
  const std::string differing = DifferingSettings(plan.older->config, config);
  std::cout << "\nAgainst " << plan.older->path << ", above 1 is faster than it was:\n"
            << Render(ComparisonTable(*comparison), {.format = plan.format, .footer = false});
  if (!differing.empty()) std::cout << "These runs differ in " << differing << ".\n";
}

int Conclude(const Benchmark& benchmark, const QueryBenchOptions& options, const Plan& plan,
             const QueryWork& work, const BenchmarkDuckDb* duckdb) {
  const QuerySummary summary = Summarize(work.times(), work.load_rows_per_second());
  const Json config = ConfigJson(options, plan, work, duckdb);
  std::optional<Comparison> comparison;
  if (plan.older.has_value()) comparison = Compare(*plan.older, work.times());
  if (plan.format == OutputFormat::kJson) {
    JsonReport report{.command = absl::StrCat("bench ", benchmark.name),
                      .config = config,
                      .rows = TimesJson(work.times()),
                      .summary = SummaryJson(summary, benchmark.largest_table)};
    if (comparison.has_value()) AddComparison(*comparison, report.rows, report.summary);
    std::cout << report.ToString();
  } else {
    PrintTables(benchmark, plan, work, summary, comparison, config);
  }
  std::cout.flush();
  return summary.correct_queries == summary.queries ? kExitOk : kExitCheckFailed;
}

int RunIn(const std::string& directory, const Benchmark& benchmark, const QueryBenchOptions& options,
          const Plan& plan) {
  StopSignals stop;
  std::unique_ptr<BenchmarkDuckDb> duckdb;
  if (plan.duckdb) {
    auto started = DuckDb::Start({.peer_dir = options.peer_dir,
                                  .log_file = absl::StrCat(directory, "/duckdb.log"),
                                  .threads = plan.threads,
                                  .memory_bytes = options.peer_memory_bytes,
                                  .file = options.peer_file ? directory + "/duckdb.db" : std::string()});
    if (!started.ok()) {
      return absl::IsFailedPrecondition(started.status()) ? Refuse(started.status())
                                                          : ReportFailure(started.status());
    }
    duckdb = std::make_unique<BenchmarkDuckDb>(std::move(started).value(), options.peer_sorted);
  }
  const uint64_t memory_bytes =
      options.memory_bytes != 0
          ? options.memory_bytes
          : MemoryForTables(benchmark.bytes_per_scale_factor * options.scale_factor, options.memory_servers);
  const auto cluster = LocalCluster::Start({.directory = directory,
                                            .name = "bench",
                                            .fabric = options.fabric,
                                            .memory_servers = options.memory_servers,
                                            .compute_servers = options.compute_servers,
                                            .memory_bytes = memory_bytes,
                                            .threads = plan.threads_per_server},
                                           stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  QueryWork work(
      {.benchmark = &benchmark,
       .cluster = {.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()},
       .source = plan.source,
       .queries = plan.queries,
       .repeat = options.repeat,
       .block_bytes = options.block_bytes,
       .threads = plan.threads,
       .loop = plan.loop,
       .tbl_directory = directory + "/tbl",
       .duckdb = duckdb.get()});
  const absl::Status status = RunClusterWork(**cluster, work, stop, directory);
  return status.ok() ? Conclude(benchmark, options, plan, work, duckdb.get()) : ReportFailure(status);
}

}  // namespace

int RunQueryBench(const Benchmark& benchmark, const QueryBenchOptions& options) {
  const auto plan = MakePlan(benchmark, options);
  if (!plan.ok()) return Refuse(plan.status());
  WarnOfLoad(plan->load_average);
  const auto directory = MakeLargeDirectory();
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunIn(*directory, benchmark, options, *plan);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::bench
