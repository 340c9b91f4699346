#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/duckdb.h"
#include "bench/query_report.h"
#include "catalog/attachment.h"
#include "dataset/generator.h"
#include "dataset/tbl_writer.h"
#include "localcluster/state_directory.h"
#include "partitioner/loader.h"
#include "session/session.h"
#include "storage/block.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"
#include "storage/scratch_streams.h"
#include "terminal/units.h"
#include "workload/benchmark_data.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

constexpr int kLoaderThreadsMax = 16;
constexpr int64_t kLoadTimeoutMsPerScaleFactor = 600'000;

/// A ratio of every query, by its name.
struct NamedRatio {
  const char* name;
  const char* slower;
  const char* faster;
};
constexpr NamedRatio kRatios[] = {{"speedup_over_duckdb_in_place", kDuckDb, kInPlace},
                                  {"speedup_over_duckdb_copy", kDuckDb, kCopy},
                                  {"read_over_copy", kRead, kCopy}};  // 1: takes no longer than its bytes

/// The narrowest type for the data, as an expert would declare it: DuckDB stores in-memory columns at their
/// declared width, so this is also the fastest.
std::string DuckDbType(const partitioner::ColumnSchema& column, double scale_factor) {
  static const std::set<std::string_view> bytes = {
      "lo_linenumber",      "lo_quantity",     "lo_discount",      "lo_tax",          "p_size",
      "d_daynuminweek",     "d_daynuminmonth", "d_monthnuminyear", "d_weeknuminyear", "d_lastdayinweekfl",
      "d_lastdayinmonthfl", "d_holidayfl",     "d_weekdayfl"};
  static const std::set<std::string_view> shorts = {"d_year", "d_daynuminyear"};
  constexpr double kOrderKeysOfFourBytes = 300;  // limit of the scale factor: one in four keys is used
  if (column.type.kind == TypeKind::kString) return "VARCHAR";
  if (column.type.kind == TypeKind::kDate) return "DATE";
  if (column.type.kind == TypeKind::kDecimal)
    return absl::StrCat("DECIMAL(", static_cast<int>(column.type.precision), ",",
                        static_cast<int>(column.type.scale), ")");
  if (column.type.precision == 8) return "BIGINT";
  if (bytes.contains(column.name)) return "UTINYINT";
  if (shorts.contains(column.name)) return "USMALLINT";
  return column.name == "lo_orderkey" && scale_factor > kOrderKeysOfFourBytes ? "BIGINT" : "INTEGER";
}

/// Loads a benchmark's tables from dbgen's files with the generator's data; returns the seconds taken.
absl::StatusOr<double> LoadIntoDuckDb(DuckDb& duckdb, const std::string& tbl_directory,
                                      const dataset::Generator& generator) {
  const double scale_factor = generator.options().scale_factor;
  NAM_RETURN_IF_ERROR(duckdb.Open());
  DuckDb::Json tables = DuckDb::Json::array();
  for (size_t table = 0; table < generator.tables().size(); ++table) {
    const dataset::Table& described = generator.tables()[table];
    DuckDb::Json columns = DuckDb::Json::array();
    for (const partitioner::ColumnSchema& column : described.schema.columns)
      columns.push_back({{"name", column.name}, {"type", DuckDbType(column, scale_factor)}});
    tables.push_back({{"name", described.schema.name},
                      {"file", described.file_names.front()},
                      {"rows", generator.Rows(table)},
                      {"columns", std::move(columns)}});
  }
  const auto timeout_ms =
      static_cast<int64_t>(static_cast<double>(kLoadTimeoutMsPerScaleFactor) * std::max(1.0, scale_factor));
  return duckdb.Load({{"op", "load"}, {"directory", tbl_directory}, {"tables", tables}}, timeout_ms);
}

/// The fabric's bound for a query that moves a number of bytes: READs of 64 KiB from all memory servers in
/// turn, 16 in flight per thread, without looking at the data. One caller at a time.
class ReadBound {
 public:
  /// Opens a channel per thread. FAILED_PRECONDITION if no memory server has 64 KiB. `attachment` must
  /// outlive this object.
  absl::Status Open(catalog::Attachment& attachment, int threads) {
    NAM_RETURN_IF_ERROR(FindPlaces(attachment));
    for (int i = 0; i < threads; ++i) {
      NAM_ASSIGN_OR_RETURN(channels_.emplace_back(),
                           storage::Channel::Open(attachment.fabric(), attachment, {}));
    }
    return absl::OkStatus();
  }

  /// Milliseconds until `bytes`, rounded up to whole READs, have arrived.
  absl::StatusOr<double> Run(uint64_t bytes) {
    const uint64_t reads = (bytes + kReadBytes - 1) / kReadBytes;
    std::vector<std::vector<storage::ScratchPage>> pages(channels_.size());
    for (uint64_t i = 0; i < reads; ++i)
      pages[i % pages.size()].push_back({places_[i % places_.size()], kReadBytes});
    fabric::Fabric& fabric = channels_.front()->fabric();
    const int64_t begun_ns = fabric.clock().NowNs();
    NAM_RETURN_IF_ERROR(RunAtOnce(std::vector(channels_.size(), &fabric),
                                  [&](size_t i) { return ReadAll(*channels_[i], std::move(pages[i])); }));
    return static_cast<double>(fabric.clock().NowNs() - begun_ns) * 1e-6;
  }

 private:
  static constexpr uint32_t kReadBytes = 64 << 10, kInFlight = 16;
  static constexpr size_t kPlacesMax = 16'384;  // 1 GiB

  absl::Status FindPlaces(catalog::Attachment& attachment) {
    NAM_ASSIGN_OR_RETURN(const auto members, attachment.Members(proto::ROLE_MEMORY));
    std::vector<std::vector<storage::RemotePtr<void>>> servers;
    size_t most = 0;
    for (const auto& member : members) {
      const MemoryServerId server(static_cast<uint16_t>(member.id()));
      NAM_ASSIGN_OR_RETURN(const auto regions, attachment.Lookup(server, /*refresh=*/true));
      auto& places = servers.emplace_back();
      for (const auto& region : regions->regions) {
        for (uint64_t at = 0; at + kReadBytes <= region.bytes; at += kReadBytes)
          places.emplace_back(server, region.offset + at);
      }
      most = std::max(most, places.size());
    }
    if (most == 0) return absl::FailedPreconditionError("no memory server has anything to READ");
    for (size_t i = 0; i < most && places_.size() < kPlacesMax; ++i) {
      for (const auto& places : servers) {
        if (!places.empty()) places_.push_back(places[i % places.size()]);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status ReadAll(storage::Channel& channel, std::vector<storage::ScratchPage> pages) {
    const std::atomic<bool> never = false;
    storage::ScratchReader reader(channel, kReadBytes, kInFlight, never);
    reader.Start(std::move(pages));
    while (true) {
      NAM_ASSIGN_OR_RETURN(const std::span<std::byte> page, reader.Next());
      if (page.empty()) return absl::OkStatus();
    }
  }

  std::vector<std::unique_ptr<storage::Channel>> channels_;
  std::vector<storage::RemotePtr<void>> places_;  // of 64 KiB, with servers in turn
};

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
        Option::Within("--threads", &threads_, 0, kQueryThreadsMax,
                       "total per contender; 0: one per processor"),
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
    duckdb_ = duckdb.get();
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
        [&](catalog::Attachment& attachment, const ClusterOptions&) { return RunOn(run, attachment); }));
    return ReportOf();
  }

 private:
  /// All contenders load the same rows, and take turns at each query.
  absl::Status RunOn(Run& run, catalog::Attachment& attachment) {
    in_place_ = attachment.fabric().capabilities().in_place;
    NAM_RETURN_IF_ERROR(LoadOurs(run, attachment));
    if (duckdb_ != nullptr) NAM_RETURN_IF_ERROR(LoadDuckDb(run, attachment.fabric()));
    ReadBound bound;
    NAM_RETURN_IF_ERROR(bound.Open(attachment, threads_));
    NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
    run.OnCancel([&] {
      session->Cancel();
      if (duckdb_ != nullptr) duckdb_->Cancel();
    });
    absl::Status status;
    for (const BenchmarkQuery& query : queries_) {
      if (status.ok()) status = MeasureQuery(run, *session, bound, query);
    }
    run.OnCancel();
    run.progress().Clear();
    return status;
  }

  static void Say(Run& run, const std::string& text) {
    run.progress().Clear();
    if (run.progress().shown()) std::fprintf(stderr, "%s\n", text.c_str());
  }

  absl::Status LoadOurs(Run& run, catalog::Attachment& attachment) {
    partitioner::LoadOptions load{.threads = source_.threads_used()};
    load.block_bytes = static_cast<uint32_t>(block_bytes_);
    NAM_ASSIGN_OR_RETURN(const auto loaded, LoadBenchmark(attachment, benchmark_, source_, load,
                                                          run.progress(), run.cancelled()));
    const std::string& name = benchmark_.largest_table;
    const auto largest = std::find_if(loaded.begin(), loaded.end(),
                                      [&](const LoadedTable& table) { return table.name == name; });
    if (largest == loaded.end()) return absl::InternalError(absl::StrCat(name, " was not loaded"));
    load_rows_per_second_ = static_cast<double>(largest->rows) / std::max(largest->seconds, 1e-9);
    Say(run, absl::StrFormat("Loaded %s: %s rows in %.1f s, %s rows/s, generated on the way.", name,
                             FormatCount(largest->rows), largest->seconds,
                             FormatCount(static_cast<uint64_t>(load_rows_per_second_))));
    return absl::OkStatus();
  }

  absl::Status LoadDuckDb(Run& run, fabric::Fabric& fabric) {
    NAM_ASSIGN_OR_RETURN(const std::string directory, run.Directory());
    const std::string tbl_directory = directory + "/tbl";
    const auto generator =
        benchmark_.make_generator({.scale_factor = source_.scale_factor, .seed = source_.seed});
    std::vector<size_t> tables(generator->tables().size());
    std::iota(tables.begin(), tables.end(), size_t{0});
    const auto written = dataset::WriteTbl(fabric, *generator, tables, tbl_directory,
                                           {.work = {.threads = source_.threads_used(),
                                                     .progress = run.progress().For("writing for DuckDB:"),
                                                     .cancelled = &run.cancelled()}});
    if (!written.ok()) return written.status();
    run.progress().Show("DuckDB loads the tables");
    run.OnCancel([this] { duckdb_->Cancel(); });
    const auto seconds = LoadIntoDuckDb(*duckdb_, tbl_directory, *generator);
    run.OnCancel();
    RemoveTree(tbl_directory);
    if (!seconds.ok()) return seconds.status();
    duckdb_load_seconds_ = *seconds;
    Say(run, absl::StrFormat("DuckDB %s loaded the same rows from .tbl files in %.1f s.", duckdb_->version(),
                             *seconds));
    return absl::OkStatus();
  }

  absl::Status MeasureQuery(Run& run, session::Session& session, ReadBound& bound,
                            const BenchmarkQuery& query) {
    std::optional<Rows> expected;  // the first contender's
    const int digits = benchmark_.peer_digits;
    const auto right = [&](const Rows& rows) {
      if (!expected.has_value()) expected = rows;
      return digits == 0 ? SameRows(rows, *expected) : SameRowsTo(digits, rows, *expected);
    };
    absl::StatusOr<std::vector<ContenderTimes>> times =
        TakeTurns(ContendersOf(session, bound, query.sql), right,
                  {.repeat = repeat_, .proceed = [&](const std::string& turn) {
                     return run.Proceed(absl::StrCat(query.id, ": ", turn));
                   }});
    if (!times.ok())
      return absl::Status(times.status().code(), absl::StrCat(query.id, ": ", times.status().message()));
    for (const ContenderTimes& contender : *times) {
      if (!contender.refusal.empty())
        return absl::ResourceExhaustedError(absl::StrCat(query.id, ": ", contender.refusal));
    }
    NAM_ASSIGN_OR_RETURN(const session::ResultSet explained,
                         session.Execute(absl::StrCat("EXPLAIN ", query.sql)));
    std::string plan;
    for (const std::vector<Value>& line : explained.rows) absl::StrAppend(&plan, line[0].text, "\n");
    figures_.push_back({.title = query.id,
                        .settings = {{"query", query.id}, {"rows", expected->size()}},
                        .contenders = *std::move(times),
                        .plan = std::move(plan)});
    return absl::OkStatus();
  }

  std::vector<Contender> ContendersOf(session::Session& session, ReadBound& bound, const std::string& sql) {
    std::vector<Contender> contenders;
    if (in_place_) contenders.push_back({kInPlace, [&] { return Ask(session, sql, /*in_place=*/true); }});
    contenders.push_back({kCopy, [&] { return Ask(session, sql, /*in_place=*/false); }});
    if (duckdb_ != nullptr) {
      contenders.push_back({kDuckDb, [&]() -> absl::StatusOr<Turn> {
                              NAM_ASSIGN_OR_RETURN(DuckDb::Answer answer, duckdb_->Query(sql));
                              return Turn{std::move(answer.rows), answer.elapsed_ms};
                            }});
    }
    contenders.push_back({kRead,
                          [&]() -> absl::StatusOr<Turn> {
                            NAM_ASSIGN_OR_RETURN(const double elapsed_ms, bound.Run(copied_bytes_));
                            return Turn{.elapsed_ms = elapsed_ms};
                          },
                          /*answers=*/false});
    return contenders;
  }

  absl::StatusOr<Turn> Ask(session::Session& session, const std::string& sql, bool in_place) {
    NAM_RETURN_IF_ERROR(
        session.Execute(absl::StrCat("SET nam.in_place = ", in_place ? "on" : "off")).status());
    NAM_ASSIGN_OR_RETURN(session::ResultSet result, session.Execute(sql));
    if (!in_place) copied_bytes_ = result.work.bytes;
    return Turn{std::move(result.rows), result.elapsed_ms};
  }

  Report ReportOf() {
    Report report{.rows = QueryRows(figures_),
                  .summary = QuerySummary(figures_),
                  .remarks = absl::StrCat("Medians in milliseconds; ratios above 1 are in our favour. ",
                                          threads_, " threads on each side.\n"),
                  .charts = {TimeChart("Time of each query", figures_)}};
    report.summary[absl::StrCat("load_", benchmark_.largest_table, "_rows_per_second")] =
        static_cast<int64_t>(load_rows_per_second_);
    report.correct = AllEqual(figures_);
    if (duckdb_ != nullptr) {
      report.config["duckdb"] = {{"version", duckdb_->version()},
                                 {"threads", threads_},
                                 {"memory_bytes", peer_memory_bytes_},
                                 {"tables", peer_file_ ? "in a file" : "in memory"},
                                 {"load_seconds", duckdb_load_seconds_}};
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
  // Measured:
  DuckDb* duckdb_ = nullptr;   // Measure owns it; null: takes no part
  bool in_place_ = false;      // the fabric can
  uint64_t copied_bytes_ = 0;  // in the last turn of `copy`
  std::vector<CaseFigures> figures_;
  double load_rows_per_second_ = 0;
  double duckdb_load_seconds_ = 0;
};

}  // namespace

Json QueryRows(const std::vector<CaseFigures>& queries) {
  Json rows = Json::array();
  for (const CaseFigures& query : queries) {
    Json& row = rows.emplace_back(query.settings);
    row["equal_rows"] = query.equal();
    for (const ContenderTimes& times : query.contenders) {
      if (!times.equal) row["wrong"].push_back(times.name);
    }
    for (const ContenderTimes& times : query.contenders)
      row[absl::StrCat(times.name, "_median_ms")] = Rounded(times.median_ms());
    for (const NamedRatio& ratio : kRatios) SetIf(row, ratio.name, query.Ratio(ratio.slower, ratio.faster));
    for (const ContenderTimes& times : query.contenders)
      row[absl::StrCat(times.name, "_ms")] = Rounded(times.times_ms);
    if (!query.plan.empty()) row["plan"] = query.plan;
  }
  return rows;
}

Json QuerySummary(const std::vector<CaseFigures>& queries) {
  Json summary{{"queries", queries.size()},
               {"correct_queries", std::count_if(queries.begin(), queries.end(),
                                                 [](const CaseFigures& query) { return query.equal(); })}};
  for (const NamedRatio& ratio : kRatios) {
    std::vector<double> all;
    for (const CaseFigures& query : queries) {
      if (const auto one = query.Ratio(ratio.slower, ratio.faster)) all.push_back(*one);
    }
    if (all.empty()) continue;
    SetIf(summary, absl::StrCat(ratio.name, "_geomean"), GeometricMean(all));
    SetIf(summary, absl::StrCat(ratio.name, "_min"), *std::min_element(all.begin(), all.end()));
  }
  return summary;
}

std::unique_ptr<Command> SsbCommand() {
  return std::make_unique<QueryBench>(SsbBenchmark(),
                                      "the Star Schema Benchmark's queries, taking turns with a peer");
}

std::unique_ptr<Command> TpchCommand() {
  return std::make_unique<QueryBench>(TpchBenchmark(), "TPC-H's 22 queries, taking turns with a peer");
}

}  // namespace nam::bench
