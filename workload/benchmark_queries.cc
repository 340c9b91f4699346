#include "workload/benchmark_queries.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "terminal/units.h"

namespace nam {
namespace {

using session::ResultSet;

double Median(std::vector<double> values) {
  NAM_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// An exact value with three decimals.
Value Milliseconds(double ms) {
  return Value::Decimal(std::llround(ms * 1000), 3);
}

const char* CheckText(const QueryOutcome& outcome) {
  return !outcome.correct.has_value() ? "not checked" : *outcome.correct ? "ok" : "WRONG";
}

}  // namespace

absl::StatusOr<std::vector<QueryOutcome>> RunQueries(session::Session& session,
                                                     const std::vector<BenchmarkQuery>& queries, int repeat,
                                                     ProgressLine& progress,
                                                     const std::function<bool()>& interrupted) {
  NAM_CHECK(repeat >= 1);
  std::vector<QueryOutcome> outcomes;
  for (const BenchmarkQuery& query : queries) {
    QueryOutcome outcome{.id = query.id, .sql = query.sql};
    std::vector<double> times_ms, working_ms, waiting_ms;
    for (int i = 0; i < repeat; ++i) {
      progress.Show(absl::StrCat("running ", outcome.id, " (", i + 1, " of ", repeat, ")"));
      if (interrupted()) return absl::CancelledError("interrupted");
      auto result = session.Execute(query.sql);
      if (!result.ok()) {
        return absl::Status(result.status().code(),
                            absl::StrCat(outcome.id, ": ", result.status().message()));
      }
      times_ms.push_back(result->elapsed_ms);
      working_ms.push_back(result->work.total_ms - result->work.waiting_ms);
      waiting_ms.push_back(result->work.waiting_ms);
      outcome.result = std::move(result).value();
    }
    outcome.median_ms = Median(times_ms);
    outcome.working_ms = Median(working_ms);
    outcome.waiting_ms = Median(waiting_ms);
    const auto [least, greatest] = std::minmax_element(times_ms.begin(), times_ms.end());
    outcome.min_ms = *least;
    outcome.max_ms = *greatest;
    outcomes.push_back(std::move(outcome));
  }
  progress.Clear();
  return outcomes;
}

absl::Status CheckQueries(SqliteOracle& oracle, const Benchmark& benchmark, ProgressLine& progress,
                          std::vector<QueryOutcome>& outcomes) {
  for (QueryOutcome& outcome : outcomes) {
    progress.Show(absl::StrCat("checking ", outcome.id, " by SQLite"));
    NAM_ASSIGN_OR_RETURN(const SqliteOracle::Rows rows, oracle.Run(benchmark.sqlite_sql(outcome.sql)));
    outcome.correct = benchmark.sqlite_digits == 0
                          ? SameRows(outcome.result.rows, rows)
                          : SameRowsTo(benchmark.sqlite_digits, outcome.result.rows, rows);
  }
  progress.Clear();
  return absl::OkStatus();
}

size_t CorrectQueries(const std::vector<QueryOutcome>& outcomes) {
  return static_cast<size_t>(std::count_if(outcomes.begin(), outcomes.end(),
                                           [](const QueryOutcome& o) { return o.correct == true; }));
}

double GeometricMeanMs(const std::vector<QueryOutcome>& outcomes) {
  constexpr double kLeastMs = 1e-6;  // keeps queries without measurable time from making the mean zero
  double sum = 0;
  for (const QueryOutcome& outcome : outcomes) sum += std::log(std::max(outcome.median_ms, kLeastMs));
  return outcomes.empty() ? 0 : std::exp(sum / static_cast<double>(outcomes.size()));
}

ResultSet QueriesReport(const std::vector<QueryOutcome>& outcomes) {
  ResultSet report;
  report.columns = {{"query", Type::String()},
                    {"median_ms", Type::Decimal(3)},
                    {"min_ms", Type::Decimal(3)},
                    {"rows", Type::Integer()},
                    {"check", Type::String()}};
  for (const QueryOutcome& outcome : outcomes) {
    report.rows.push_back({Value::String(outcome.id), Milliseconds(outcome.median_ms),
                           Milliseconds(outcome.min_ms),
                           Value::Integer(static_cast<__int128>(outcome.result.rows.size())),
                           Value::String(CheckText(outcome))});
  }
  return report;
}

Json QueriesJson(const std::vector<QueryOutcome>& outcomes) {
  Json all = Json::array();
  for (const QueryOutcome& outcome : outcomes) {
    Json columns = Json::array(), rows = Json::array();
    for (const ResultSet::Column& column : outcome.result.columns) columns.push_back(column.name);
    for (const std::vector<Value>& row : outcome.result.rows) {
      Json& line = rows.emplace_back(Json::array());
      for (const Value& value : row) line.push_back(ToJson(value));
    }
    Json one{{"query", outcome.id},
             {"median_ms", InThousandths(outcome.median_ms)},
             {"min_ms", InThousandths(outcome.min_ms)},
             {"working_ms", InThousandths(outcome.working_ms)},
             {"waiting_ms", InThousandths(outcome.waiting_ms)},
             {"rows_streamed", outcome.result.work.rows},
             {"bytes_moved", outcome.result.work.bytes},
             {"rows", outcome.result.rows.size()},
             {"check", CheckText(outcome)}};
    one["result"] = {{"columns", columns}, {"rows", rows}};
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace nam
