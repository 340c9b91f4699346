#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/command.h"
#include "bench/duckdb.h"
#include "bench/read_bound.h"
#include "bench/turns.h"
#include "session/session.h"
#include "workload/benchmark_data.h"

namespace nam::bench {

// Contenders, in the order of their turns: stems of the report's names.
inline constexpr char kInPlace[] = "in_place";  // NAM, blocks in place (if the fabric can)
inline constexpr char kCopy[] = "copy";         // NAM, every block by READ
inline constexpr char kDuckDb[] = "duckdb";
inline constexpr char kRead[] = "read";  // READs only the bytes of `copy`: see ReadBound

struct QueryWorkOptions {
  const Benchmark* benchmark = nullptr;
  DataSource source;
  std::vector<BenchmarkQuery> queries;
  int repeat = 7;
  uint64_t block_bytes = 0;
  int threads = 2;            // for the READ bound; servers and peer have their own
  std::string tbl_directory;  // created, and removed once the peer has read it
  DuckDb* duckdb = nullptr;   // null: takes no part
};

/// All contenders load the same rows, and take turns at each query.
class QueryWork {
 public:
  QueryWork(Run& run, const QueryWorkOptions& options) : run_(run), options_(options) {}

  absl::Status RunOn(catalog::Attachment& attachment);

  // After RunOn:
  const std::vector<CaseFigures>& queries() const { return queries_; }
  double load_rows_per_second() const { return load_rows_per_second_; }
  /// 0 if DuckDB took no part.
  double duckdb_load_seconds() const { return duckdb_load_seconds_; }

 private:
  void Say(const std::string& text);
  absl::Status LoadOurs(catalog::Attachment& attachment);
  absl::Status LoadDuckDb(fabric::Fabric& fabric);
  absl::Status Measure(session::Session& session, ReadBound& bound, const BenchmarkQuery& query);
  std::vector<Contender> ContendersOf(session::Session& session, ReadBound& bound, const std::string& sql);
  absl::StatusOr<Turn> Ask(session::Session& session, const std::string& sql, bool in_place);

  Run& run_;
  const QueryWorkOptions options_;
  bool in_place_ = false;      // the fabric can
  uint64_t copied_bytes_ = 0;  // in the last turn of `copy`
  std::vector<CaseFigures> queries_;
  double load_rows_per_second_ = 0;
  double duckdb_load_seconds_ = 0;
};

// Figures. In every ratio more is better for NAM.

/// One row per query. Its settings are the query's name and number of rows.
Json QueryRows(const std::vector<CaseFigures>& queries);
/// Numbers of queries and of those with equal rows; geometric means and least of the ratios.
Json QuerySummary(const std::vector<CaseFigures>& queries);

}  // namespace nam::bench
