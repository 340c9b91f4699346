#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/benchmark_duckdb.h"
#include "bench/command.h"
#include "bench/query_report.h"
#include "bench/read_bound.h"
#include "bench/ssb_loop.h"
#include "dataset/generator.h"
#include "session/session.h"
#include "workload/benchmark_data.h"

namespace nam::bench {

struct QueryWorkOptions {
  const Benchmark* benchmark = nullptr;
  DataSource source;
  std::vector<BenchmarkQuery> queries;
  int repeat = 7;
  uint64_t block_bytes = 0;    // 0: the loader's default
  bool replace = false;        // replace existing tables
  int threads = 2;             // for the loop; servers and peer have their own
  bool loop = true;            // SSB only
  std::string tbl_directory;   // created, and removed once the peer has read it
  DuckDb* duckdb = nullptr;    // null: takes no part
  bool duckdb_sorted = false;  // its tables in the order in which NAM clusters them
};

/// All contenders load the same rows; then for each query
///
///     warm-up of each ─▶ in place, copy, DuckDB, loop, read ─▶ in place, copy, DuckDB, loop, read ─▶ …
///
/// so that other load on the machine affects all alike.
class QueryWork {
 public:
  QueryWork(Run& run, const QueryWorkOptions& options) : run_(run), options_(options) {}

  absl::Status RunOn(catalog::Attachment& attachment);

  // After Run:
  const std::vector<QueryTimes>& times() const { return times_; }
  using Rows = std::vector<std::vector<Value>>;
  /// The rows of each query, from the first contender.
  const std::vector<Rows>& answers() const { return answers_; }
  double load_rows_per_second() const { return load_rows_per_second_; }
  /// 0 if DuckDB took no part.
  double duckdb_load_seconds() const { return duckdb_load_seconds_; }

 private:
  struct Turn {
    Rows rows;
    double elapsed_ms = 0;
  };

  bool Same(const Rows& a, const Rows& b) const;
  void Say(const std::string& text);
  absl::Status LoadOurs(catalog::Attachment& attachment);
  absl::Status LoadDuckDb(fabric::Fabric& fabric, const dataset::Generator& generator);
  absl::Status LoadLoop(fabric::Fabric& fabric, const dataset::Generator& generator);
  absl::Status MeasureAll(session::Session& session);
  absl::StatusOr<QueryTimes> Measure(session::Session& session, const BenchmarkQuery& query);
  absl::StatusOr<Turn> Take(session::Session& session, const BenchmarkQuery& query, QueryContender contender);
  static absl::StatusOr<std::string> PlanOf(session::Session& session, const BenchmarkQuery& query);
  dataset::WorkOptions WorkOptions(const std::string& doing);

  Run& run_;
  const QueryWorkOptions options_;
  std::unique_ptr<SsbLoop> loop_;
  ReadBound* read_bound_ = nullptr;  // set while RunOn runs
  uint64_t copied_bytes_ = 0;        // in the last turn of `copy`
  std::vector<QueryContender> contenders_;
  std::vector<QueryTimes> times_;
  std::vector<Rows> answers_;
  double load_rows_per_second_ = 0;
  double duckdb_load_seconds_ = 0;
};

}  // namespace nam::bench
