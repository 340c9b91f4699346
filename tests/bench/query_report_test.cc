#include "bench/query_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nam::bench {
namespace {

CaseFigures QueryFigures(const std::string& id, const std::vector<double>& in_place,
                         const std::vector<double>& copy, const std::vector<double>& duckdb,
                         const std::vector<double>& read = {}) {
  CaseFigures query{.title = id, .settings = {{"query", id}, {"rows", 3}}};
  const auto add = [&](const char* name, const std::vector<double>& ms) {
    if (!ms.empty()) query.contenders.push_back({name, ms});
  };
  add(kInPlace, in_place);
  add(kCopy, copy);
  add(kDuckDb, duckdb);
  add(kRead, read);
  return query;
}

std::vector<CaseFigures> TwoQueries() {
  return {QueryFigures("Q1.1", {2, 1, 9}, {4, 4, 5}, {8, 8, 8}, {3}),
          QueryFigures("Q1.2", {10}, {20}, {5}, {5})};
}

TEST(QueryReportTest, SummaryComparesMedians) {
  const Json summary = QuerySummary(TwoQueries());
  EXPECT_EQ(summary["queries"], 2);
  EXPECT_EQ(summary["correct_queries"], 2);
  EXPECT_EQ(summary["speedup_over_duckdb_in_place_geomean"], 1.414);
  EXPECT_EQ(summary["speedup_over_duckdb_in_place_min"], 0.5);
  EXPECT_EQ(summary["speedup_over_duckdb_copy_geomean"], 0.707);
  EXPECT_EQ(summary["speedup_over_duckdb_copy_min"], 0.25);
}

TEST(QueryReportTest, WhatTheBytesAloneTakeIsComparedWithCopies) {
  const Json summary = QuerySummary(TwoQueries());
  EXPECT_EQ(summary["read_over_copy_min"], 0.25);
  EXPECT_EQ(summary["read_over_copy_geomean"], 0.433);
  EXPECT_EQ(QueryRows(TwoQueries())[1]["read_over_copy"], 0.25);
  EXPECT_FALSE(QuerySummary({QueryFigures("Q1.1", {1}, {1}, {})}).contains("read_over_copy_min"));
}

TEST(QueryReportTest, WrongRowsCount) {
  std::vector<CaseFigures> queries = TwoQueries();
  queries[1].contenders[2].equal = false;
  EXPECT_EQ(QuerySummary(queries)["correct_queries"], 1);
  const Json rows = QueryRows(queries);
  EXPECT_EQ(rows[0]["equal_rows"], true);
  EXPECT_EQ(rows[1]["equal_rows"], false);
  EXPECT_EQ(rows[1]["wrong"], Json::array({"duckdb"}));
}

TEST(QueryReportTest, WhoDidNotRunIsLeftOut) {
  const std::vector<CaseFigures> queries = {QueryFigures("Q2.1", {}, {4}, {})};
  const Json summary = QuerySummary(queries);
  EXPECT_FALSE(summary.contains("speedup_over_duckdb_in_place_geomean"));
  EXPECT_FALSE(summary.contains("speedup_over_duckdb_copy_geomean"));
  std::vector<std::string> columns;
  for (const auto& column : TableOf(WithoutArrays(QueryRows(queries))).columns)
    columns.push_back(column.name);
  EXPECT_EQ(columns, (std::vector<std::string>{"query", "rows", "equal_rows", "copy_median_ms"}));
  const std::string chart = TimeChart("Times", queries);
  EXPECT_NE(chart.find("copy, Q2.1: 4"), std::string::npos) << chart;
  EXPECT_EQ(chart.find("duckdb"), std::string::npos);
}

}  // namespace
}  // namespace nam::bench
