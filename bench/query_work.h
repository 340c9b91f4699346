#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/benchmark_duckdb.h"
#include "bench/query_report.h"
#include "bench/read_bound.h"
#include "bench/ssb_loop.h"
#include "dataset/generator.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "session/session.h"
#include "terminal/progress_line.h"
#include "workload/benchmark_data.h"

namespace nam::bench {

struct QueryWorkOptions {
  const Benchmark* benchmark = nullptr;
  ClusterOptions cluster;
  DataSource source;
  std::vector<BenchmarkQuery> queries;
  int repeat = 7;
  uint64_t block_bytes = 0;           // 0: the loader's default
  bool replace = false;               // replace existing tables
  int threads = 2;                    // for the loop; servers and peer have their own
  bool loop = true;                   // SSB only
  std::string tbl_directory;          // created, and removed once the peer has read it
  BenchmarkDuckDb* duckdb = nullptr;  // null: takes no part
};

/// All contenders load the same rows; then for each query
///
///     warm-up of each ─▶ in place, copy, DuckDB, loop, read ─▶ in place, copy, DuckDB, loop, read ─▶ …
///
/// so that other load on the machine affects all alike.
class QueryWork final : public ClusterWork {
 public:
  explicit QueryWork(const QueryWorkOptions& options) : options_(options) {}

  absl::Status Run() override;
  void Cancel() override;

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
  absl::StatusOr<Turn> Take(session::Session& session, const BenchmarkQuery& query, Contender contender);
  static absl::StatusOr<std::string> PlanOf(session::Session& session, const BenchmarkQuery& query);
  void SetSession(session::Session* session);
  dataset::WorkOptions WorkOptions(const std::string& doing);

  const QueryWorkOptions options_;
  ProgressLine progress_;
  std::unique_ptr<SsbLoop> loop_;
  ReadBound* read_bound_ = nullptr;  // set while Run runs
  uint64_t copied_bytes_ = 0;        // in the last turn of `copy`
  std::vector<Contender> contenders_;
  std::vector<QueryTimes> times_;
  std::vector<Rows> answers_;
  double load_rows_per_second_ = 0;
  double duckdb_load_seconds_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::mutex session_mutex_;
  session::Session* session_ = nullptr;  // of the current queries
};

}  // namespace nam::bench
