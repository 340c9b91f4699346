#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "terminal/json_report.h"

/// Figures and layout of `nam bench ssb` and `nam bench tpch`. In every ratio more is better for NAM.
namespace nam::bench {

/// In the order of their turns.
enum class Contender : uint8_t {
  kInPlace = 0,  // NAM, blocks in place (if the fabric can)
  kCopy = 1,     // NAM, every block by READ
  kDuckDb = 2,
  kLoop = 3,  // see SsbLoop
  kRead = 4,  // READs only the bytes of `copy`: see ReadBound
};
inline constexpr std::array kContenders = {Contender::kInPlace, Contender::kCopy, Contender::kDuckDb,
                                           Contender::kLoop, Contender::kRead};
/// `in_place`, `copy`, `duckdb`, `loop`, `read`: stems of the report's names.
const char* Name(Contender contender);

struct QueryTimes {
  std::string id;
  std::array<std::vector<double>, kContenders.size()> times_ms;  // empty: did not run
  size_t rows = 0;
  std::string plan;              // NAM's, from EXPLAIN
  std::vector<Contender> wrong;  // with rows different from NAM's first way that ran

  std::vector<double>& of(Contender contender) { return times_ms[static_cast<size_t>(contender)]; }
  std::optional<double> median_ms(Contender contender) const;
  /// The time of `slower` over that of `faster`; empty unless both ran.
  std::optional<double> Ratio(Contender slower, Contender faster) const;
  /// The loop's time over NAM's, in place if that ran.
  std::optional<double> LoopOverOurs() const;
};

/// The median of at least one value.
double Median(std::vector<double> values);
/// The geometric mean of positive numbers; other numbers count as very small. Empty without values.
std::optional<double> GeometricMean(const std::vector<double>& values);

struct QuerySummary {
  size_t queries = 0;
  size_t correct_queries = 0;
  std::optional<double> speedup_over_duckdb_in_place_geomean;
  std::optional<double> speedup_over_duckdb_copy_geomean;
  std::optional<double> speedup_over_duckdb_in_place_min;
  std::optional<double> speedup_over_duckdb_copy_min;
  std::optional<double> loop_over_ours_min;
  std::optional<double> read_over_copy_geomean;  // 1: a query takes no longer than its bytes
  std::optional<double> read_over_copy_min;
  double load_rows_per_second = 0;  // for the largest table
};
QuerySummary Summarize(const std::vector<QueryTimes>& queries, double load_rows_per_second);

/// One row per query.
session::ResultSet TimesTable(const std::vector<QueryTimes>& queries);
Json TimesJson(const std::vector<QueryTimes>& queries);
/// `largest_table` names the table whose load is reported.
Json SummaryJson(const QuerySummary& summary, const std::string& largest_table);

/// The medians of an older report of the same benchmark.
struct OlderReport {
  struct Query {
    std::string id;
    std::array<std::optional<double>, kContenders.size()> median_ms;
  };
  std::string path;
  Json config;
  std::vector<Query> queries;
};
/// NOT_FOUND, or INVALID_ARGUMENT if the file is not a report of `nam bench BENCHMARK`.
absl::StatusOr<OlderReport> ReadOlderReport(const std::string& benchmark, const std::string& path);

struct Comparison {
  struct Query {
    std::string id;
    std::array<std::optional<double>, kContenders.size()> old_over_new;  // above 1: faster now
  };
  std::vector<Query> queries;  // in both reports
  std::array<std::optional<double>, kContenders.size()> geomean;
};
Comparison Compare(const OlderReport& older, const std::vector<QueryTimes>& queries);
session::ResultSet ComparisonTable(const Comparison& comparison);
/// Adds `<contender>_old_over_new` to the rows and `<contender>_old_over_new_geomean` to the summary.
void AddComparison(const Comparison& comparison, Json& rows, Json& summary);
/// The settings that differ and make the reports incomparable: `scale_factor (1, now 10)`. Empty if none.
std::string DifferingSettings(const Json& older, const Json& now);

}  // namespace nam::bench
