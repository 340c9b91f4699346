#include "bench/query_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

namespace nam::bench {
namespace {

QueryTimes Times(const std::string& id, std::vector<double> in_place, std::vector<double> copy,
                 std::vector<double> duckdb, std::vector<double> loop = {}) {
  return {.id = id,
          .times_ms = {std::move(in_place), std::move(copy), std::move(duckdb), std::move(loop)},
          .rows = 3};
}

std::vector<QueryTimes> TwoQueries() {
  return {Times("Q1.1", {2, 1, 9}, {4, 4, 5}, {8, 8, 8}, {1, 1, 1}), Times("Q1.2", {10}, {20}, {5})};
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(QueryReportTest, MedianOfOddAndEvenNumbersOfValues) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 7}), 6);
}

TEST(QueryReportTest, GeometricMean) {
  EXPECT_DOUBLE_EQ(*GeometricMean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(*GeometricMean({1, 10, 100}), 10);
  EXPECT_FALSE(GeometricMean({}).has_value());
  EXPECT_TRUE(std::isfinite(*GeometricMean({0, 1})));
}

TEST(QueryReportTest, SummaryComparesMedians) {
  const QuerySummary summary = Summarize(TwoQueries(), 1e6);
  EXPECT_EQ(summary.queries, 2u);
  EXPECT_EQ(summary.correct_queries, 2u);
  EXPECT_DOUBLE_EQ(*summary.speedup_over_duckdb_in_place_geomean, std::sqrt(4.0 * 0.5));
  EXPECT_DOUBLE_EQ(*summary.speedup_over_duckdb_in_place_min, 0.5);
  EXPECT_DOUBLE_EQ(*summary.speedup_over_duckdb_copy_geomean, std::sqrt(2.0 * 0.25));
  EXPECT_DOUBLE_EQ(*summary.speedup_over_duckdb_copy_min, 0.25);
  EXPECT_DOUBLE_EQ(*summary.loop_over_ours_min, 0.5);
}

TEST(QueryReportTest, WhatTheBytesAloneTakeIsComparedWithCopies) {
  std::vector<QueryTimes> queries = TwoQueries();
  EXPECT_FALSE(Summarize(queries, 1).read_over_copy_min.has_value());
  queries[0].of(Contender::kRead) = {3};
  queries[1].of(Contender::kRead) = {5};
  const QuerySummary summary = Summarize(queries, 1);
  EXPECT_DOUBLE_EQ(*summary.read_over_copy_min, 0.25);
  EXPECT_DOUBLE_EQ(*summary.read_over_copy_geomean, std::sqrt(0.75 * 0.25));
  EXPECT_EQ(TimesJson(queries)[1]["read_over_copy"], 0.25);
}

TEST(QueryReportTest, WrongRowsCount) {
  std::vector<QueryTimes> queries = TwoQueries();
  queries[1].wrong = {Contender::kDuckDb};
  EXPECT_EQ(Summarize(queries, 1).correct_queries, 1u);
  const Json rows = TimesJson(queries);
  EXPECT_EQ(rows[0]["equal_rows"], true);
  EXPECT_EQ(rows[1]["equal_rows"], false);
  EXPECT_EQ(rows[1]["wrong"], Json::array({"duckdb"}));
  EXPECT_EQ(TimesTable(queries).rows[1].back().text, "NO: duckdb");
}

TEST(QueryReportTest, WhoDidNotRunIsLeftOut) {
  const std::vector<QueryTimes> queries = {Times("Q2.1", {}, {4}, {}, {2})};
  const QuerySummary summary = Summarize(queries, 1);
  EXPECT_DOUBLE_EQ(*summary.loop_over_ours_min, 0.5) << "by READ, where nothing runs in place";
  const Json json = SummaryJson(summary, "lineorder");
  EXPECT_FALSE(json.contains("speedup_over_duckdb_in_place_geomean"));
  EXPECT_FALSE(json.contains("speedup_over_duckdb_copy_geomean"));
  EXPECT_TRUE(json.contains("loop_over_ours_min"));
  std::vector<std::string> columns;
  for (const auto& column : TimesTable(queries).columns) columns.push_back(column.name);
  EXPECT_EQ(columns,
            (std::vector<std::string>{"query", "copy_ms", "loop_ms", "loop/ours", "rows", "equal_rows"}));
}

TEST(QueryReportTest, TableHasAValueForEveryColumn) {
  const session::ResultSet table = TimesTable(TwoQueries());
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_TRUE(table.rows[1][6].null) << "no loop for Q1.2";
}

TEST(QueryReportTest, ComparesWithItsOwnJson) {
  std::vector<QueryTimes> queries = TwoQueries();
  JsonReport report{.command = "bench ssb",
                    .config = {{"scale_factor", 1}},
                    .rows = TimesJson(queries),
                    .summary = SummaryJson(Summarize(queries, 1), "lineorder")};
  const auto older = ReadOlderReport("ssb", WriteFile("older.json", report.ToString()));
  ASSERT_TRUE(older.ok()) << older.status();

  // Now: in place twice as fast at Q1.1 and half as fast at Q1.2, which has no copies; one query is new.
  queries = {Times("Q1.1", {1}, {8}, {8}), Times("Q1.2", {20}, {}, {5}), Times("Q4.3", {1}, {1}, {1})};
  const Comparison comparison = Compare(*older, queries);
  ASSERT_EQ(comparison.queries.size(), 2u);
  EXPECT_DOUBLE_EQ(*comparison.queries[0].old_over_new[0], 2);
  EXPECT_DOUBLE_EQ(*comparison.queries[0].old_over_new[1], 0.5);
  EXPECT_DOUBLE_EQ(*comparison.queries[1].old_over_new[0], 0.5);
  EXPECT_FALSE(comparison.queries[1].old_over_new[1].has_value());
  EXPECT_DOUBLE_EQ(*comparison.geomean[0], 1);
  EXPECT_DOUBLE_EQ(*comparison.geomean[1], 0.5);

  Json rows = TimesJson(queries), summary = Json::object();
  AddComparison(comparison, rows, summary);
  EXPECT_EQ(rows[0]["in_place_old_over_new"], 2);
  EXPECT_FALSE(rows[2].contains("in_place_old_over_new"));
  EXPECT_EQ(summary["duckdb_old_over_new_geomean"], 1);
  EXPECT_FALSE(summary.contains("loop_old_over_new_geomean"));
  EXPECT_EQ(ComparisonTable(comparison).rows.size(), 3u) << "two queries and the mean";
}

TEST(QueryReportTest, RefusesWhatIsNoReport) {
  EXPECT_TRUE(absl::IsNotFound(ReadOlderReport("ssb", "/nonexistent/report.json").status()));
  for (const std::string text :
       {"", "{", "[]", "{\"command\": \"ssb run\", \"rows\": []}", "{\"command\": \"bench ssb\"}",
        "{\"command\": \"bench ssb\", \"rows\": [1]}",
        "{\"command\": \"bench ssb\", \"rows\": [{\"query\": 1}]}",
        "{\"command\": \"bench ssb\", \"config\": 7, \"rows\": []}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadOlderReport("ssb", WriteFile("no.json", text)).status())) << text;
  }
}

TEST(QueryReportTest, NamesSettingsThatDiffer) {
  const Json older{{"scale_factor", 1}, {"fabric", "shm"}, {"repeat", 3}};
  EXPECT_EQ(DifferingSettings(older, {{"scale_factor", 1}, {"fabric", "shm"}, {"repeat", 7}}), "");
  EXPECT_EQ(DifferingSettings(older, {{"scale_factor", 10}, {"fabric", "shm"}}), "scale_factor (1, now 10)");
}

}  // namespace
}  // namespace nam::bench
