#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "session/session.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "workload/benchmark.h"
#include "workload/sqlite_oracle.h"

namespace nam {

struct QueryOutcome {
  std::string id;
  std::string sql;
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  double working_ms = 0;        // compute servers' threads, in total; also a median
  double waiting_ms = 0;        // the same, for blocks
  session::ResultSet result;    // last run's
  std::optional<bool> correct;  // if checked
};

/// Runs each query `repeat` times, one after the other. Stops at the first failure, and with CANCELLED if
/// `interrupted` returns true between two.
absl::StatusOr<std::vector<QueryOutcome>> RunQueries(session::Session& session,
                                                     const std::vector<BenchmarkQuery>& queries, int repeat,
                                                     ProgressLine& progress,
                                                     const std::function<bool()>& interrupted);
/// Compares the results with SQLite's rows, in any order.
absl::Status CheckQueries(SqliteOracle& oracle, const Benchmark& benchmark, ProgressLine& progress,
                          std::vector<QueryOutcome>& outcomes);

size_t CorrectQueries(const std::vector<QueryOutcome>& outcomes);
/// The geometric mean of the medians.
double GeometricMeanMs(const std::vector<QueryOutcome>& outcomes);
/// One row per query: query, median_ms, min_ms, rows, check.
session::ResultSet QueriesReport(const std::vector<QueryOutcome>& outcomes);
/// `rows` of the JSON report, each with the query's own result.
Json QueriesJson(const std::vector<QueryOutcome>& outcomes);

}  // namespace nam
