#pragma once

#include <vector>

#include "bench/turns.h"
#include "terminal/json_report.h"

/// Figures of `nam bench ssb` and `nam bench tpch`. In every ratio more is better for NAM.
namespace nam::bench {

// Contenders, in the order of their turns: stems of the report's names.
inline constexpr char kInPlace[] = "in_place";  // NAM, blocks in place (if the fabric can)
inline constexpr char kCopy[] = "copy";         // NAM, every block by READ
inline constexpr char kDuckDb[] = "duckdb";
inline constexpr char kRead[] = "read";  // READs only the bytes of `copy`: see ReadBound (query_command.cc)

/// One row per query: its settings (the query's name and number of rows), whether all rows were equal and
/// whose were not, the median of each contender, the ratios, the times of all runs, and the plan. A contender
/// that took no part has no columns.
Json QueryRows(const std::vector<CaseFigures>& queries);
/// Numbers of queries and of those with equal rows; geometric means and least of the ratios, for those
/// queries that have both times.
Json QuerySummary(const std::vector<CaseFigures>& queries);

}  // namespace nam::bench
