#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/duckdb.h"
#include "bench/query_work.h"
#include "partitioner/loader.h"
#include "storage/block.h"

namespace nam::bench {
namespace {

constexpr int kThreadsMax = 1'024;
constexpr int kLoaderThreadsMax = 16;

/// `nam bench ssb` and `nam bench tpch`: a private cluster and the peer in its own process take turns at
/// every query.
class QueryBench final : public Command {
 public:
  QueryBench(const Benchmark& benchmark, const std::string& help)
      : Command(benchmark.name, help), benchmark_(benchmark) {}

  std::vector<Option> Options() override {
    std::vector<Option> options = {
        {"--scale-factor", &scale_factor_, "size of the data: 1 is six million rows of the largest table"},
        {"--seed", &seed_, "seed of the data; changes their values, not their size"},
        {"--queries", &query_ids_, "only these: Q1.1,Q2.3"},
        Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs"}, "transport of the cluster"),
        {"--memory-servers", &memory_servers_, "number of memory servers"},
        {"--compute-servers", &compute_servers_, "number of compute servers"},
        Option::Within("--threads", &threads_, 0, kThreadsMax, "total per contender; 0: one per processor"),
        Option::OneOf("--peer", &peer_, {"none", "duckdb"}, "to take turns with"),
        Option::Place("--peer-dir", &peer_dir_, "DIR", "DuckDB's process"),
        {"--peer-memory", Option::Bytes{&peer_memory_bytes_}, "the peer's memory limit; default: its own"},
        {"--peer-file", &peer_file_,
         "keep the peer's tables in a compressed file, if they do not fit its memory"},
        Option::Within("--repeat", &repeat_, 1, 10'000, "runs of each query, after a warm-up"),
        {"--memory", Option::Bytes{&memory_bytes_}, "per memory server; default: enough"},
        Option::Within("--block-bytes", Option::Bytes{&block_bytes_}, 0, storage::kMaxBlockBytes,
                       "maximum size of a block"),
    };
    if (benchmark_.name == TpchBenchmark().name) {
      options.push_back({"--parameters-seed", &parameters_seed_,
                         "seed of random query parameters; 0: the parameters of the specification's example "
                         "answers"});
    }
    return options;
  }
  bool has_charts() const override { return true; }
  absl::Status Check() override {
    QueryParameters parameters{.scale_factor = scale_factor_};
    if (parameters_seed_ != 0) parameters.seed = parameters_seed_;
    NAM_ASSIGN_OR_RETURN(queries_, SelectQueries(benchmark_, query_ids_, parameters));
    NAM_RETURN_IF_ERROR(nam::Validate(
        LocalClusterOptions{.memory_servers = memory_servers_, .compute_servers = compute_servers_}));
    source_ = {.scale_factor = scale_factor_,
               .seed = seed_,
               .threads = std::min(ThreadsOf(0, 1), kLoaderThreadsMax)};
    NAM_RETURN_IF_ERROR(nam::Validate(source_));
    threads_ = ThreadsOf(threads_, compute_servers_);
    if (block_bytes_ == 0) block_bytes_ = partitioner::LoadOptions().block_bytes;
    return peer_ == "duckdb" ? DuckDb::Check(peer_dir_) : absl::OkStatus();
  }

  absl::StatusOr<Report> Measure(Run& run) override {
    NAM_ASSIGN_OR_RETURN(const std::string directory, run.Directory());
    std::unique_ptr<DuckDb> duckdb;
    if (peer_ == "duckdb") {
      NAM_ASSIGN_OR_RETURN(duckdb,
                           DuckDb::Start({.peer_dir = peer_dir_,
                                          .log_file = directory + "/duckdb.log",
                                          .threads = threads_,
                                          .memory_bytes = peer_memory_bytes_,
                                          .file = peer_file_ ? directory + "/duckdb.db" : std::string()}));
    }
    QueryWork work(run, {.benchmark = &benchmark_,
                         .source = source_,
                         .queries = queries_,
                         .repeat = repeat_,
                         .block_bytes = block_bytes_,
                         .threads = threads_,
                         .tbl_directory = directory + "/tbl",
                         .duckdb = duckdb.get()});
    const uint64_t memory_bytes =
        memory_bytes_ != 0
            ? memory_bytes_
            : MemoryForTables(benchmark_.bytes_per_scale_factor * scale_factor_, memory_servers_);
    NAM_RETURN_IF_ERROR(run.InCluster(
        {.fabric = fabric_,
         .memory_servers = memory_servers_,
         .compute_servers = compute_servers_,
         .memory_bytes = memory_bytes,
         .threads = threads_ / compute_servers_},
        [&](catalog::Attachment& attachment, const ClusterOptions&) { return work.RunOn(attachment); }));
    return ReportOf(work, duckdb.get());
  }

 private:
  Report ReportOf(const QueryWork& work, const DuckDb* duckdb) {
    Report report{.rows = QueryRows(work.queries()),
                  .summary = QuerySummary(work.queries()),
                  .remarks = absl::StrCat("Medians in milliseconds; ratios above 1 are in our favour. ",
                                          threads_, " threads on each side.\n"),
                  .charts = {TimeChart("Time of each query", work.queries())}};
    report.summary[absl::StrCat("load_", benchmark_.largest_table, "_rows_per_second")] =
        static_cast<int64_t>(work.load_rows_per_second());
    report.correct = AllEqual(work.queries());
    if (duckdb != nullptr) {
      report.config["duckdb"] = {{"version", duckdb->version()},
                                 {"threads", threads_},
                                 {"memory_bytes", peer_memory_bytes_},
                                 {"tables", peer_file_ ? "in a file" : "in memory"},
                                 {"load_seconds", work.duckdb_load_seconds()}};
    }
    return report;
  }

  const Benchmark& benchmark_;
  double scale_factor_ = 1;
  uint64_t seed_ = 1;
  std::vector<std::string> query_ids_;  // none: all
  std::string fabric_ = "shm";
  int memory_servers_ = 2;
  int compute_servers_ = 2;
  int threads_ = 0;  // total per side, a multiple of the compute servers; 0: one per processor
  int repeat_ = 7;
  uint64_t memory_bytes_ = 0;  // per memory server; 0: enough for the scale factor
  uint64_t block_bytes_ = 0;   // 0: the loader's default
  std::string peer_ = "none";
  std::string peer_dir_ = "bench/duckdb_peer";
  uint64_t peer_memory_bytes_ = 0;  // 0: its default
  bool peer_file_ = false;          // its tables are in a file
  uint64_t parameters_seed_ = 0;    // for TPC-H's random parameters
  // Checked:
  DataSource source_;
  std::vector<BenchmarkQuery> queries_;
};

}  // namespace

std::unique_ptr<Command> SsbCommand() {
  return std::make_unique<QueryBench>(SsbBenchmark(),
                                      "the Star Schema Benchmark's queries, taking turns with a peer");
}

std::unique_ptr<Command> TpchCommand() {
  return std::make_unique<QueryBench>(TpchBenchmark(), "TPC-H's 22 queries, taking turns with a peer");
}

}  // namespace nam::bench
