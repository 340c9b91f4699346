#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "terminal/json_report.h"

/// Figures of `nam bench ssb` and `nam bench tpch`. In every ratio more is better for NAM.
namespace nam::bench {

/// In the order of their turns.
enum class QueryContender : uint8_t {
  kInPlace = 0,  // NAM, blocks in place (if the fabric can)
  kCopy = 1,     // NAM, every block by READ
  kDuckDb = 2,
  kLoop = 3,  // see SsbLoop
  kRead = 4,  // READs only the bytes of `copy`: see ReadBound
};
inline constexpr std::array kContenders = {QueryContender::kInPlace, QueryContender::kCopy,
                                           QueryContender::kDuckDb, QueryContender::kLoop,
                                           QueryContender::kRead};
/// `in_place`, `copy`, `duckdb`, `loop`, `read`: stems of the report's names.
const char* Name(QueryContender contender);

struct QueryTimes {
  std::string id;
  std::array<std::vector<double>, kContenders.size()> times_ms;  // empty: did not run
  size_t rows = 0;
  std::string plan;                   // NAM's, from EXPLAIN
  std::vector<QueryContender> wrong;  // with rows different from NAM's first way that ran

  std::vector<double>& of(QueryContender contender) { return times_ms[static_cast<size_t>(contender)]; }
  std::optional<double> median_ms(QueryContender contender) const;
  /// The time of `slower` over that of `faster`; empty unless both ran.
  std::optional<double> Ratio(QueryContender slower, QueryContender faster) const;
  /// The loop's time over NAM's, in place if that ran.
  std::optional<double> LoopOverOurs() const;
};

/// One row per query.
Json QueryRows(const std::vector<QueryTimes>& queries);
/// Numbers of queries and of those with equal rows; geometric means and least of the ratios.
Json QuerySummary(const std::vector<QueryTimes>& queries);
/// Medians by query and contender.
std::string QueryChart(const std::string& title, const std::vector<QueryTimes>& queries);
ComparedFigures ComparedQueryTimes();

}  // namespace nam::bench
