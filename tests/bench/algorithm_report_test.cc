#include "bench/algorithm_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/tuple_table.h"
#include "bench/turns.h"

namespace nam::bench {
namespace {

constexpr uint64_t kMega = 1 << 20;

CaseFigures JoinFigures(uint64_t tuples, double selectivity, double zipf,
                        const std::vector<std::pair<std::string, double>>& ms) {
  CaseFigures figures{.title = "a case",
                      .settings = {{"tuples", tuples}, {"selectivity", selectivity}, {"zipf", zipf}},
                      .tuples = 2 * tuples};
  for (const auto& [name, time] : ms) figures.contenders.push_back({name, {time, 1000 * time, time / 2}});
  return figures;
}

CaseFigures GroupFigures(uint64_t tuples, uint64_t groups,
                         const std::vector<std::pair<std::string, double>>& ms) {
  CaseFigures figures = JoinFigures(tuples, 1, 0, ms);
  figures.settings = {{"tuples", tuples}, {"groups", groups}};
  figures.tuples = tuples;
  return figures;
}

Rows Numbers(const std::vector<int>& numbers) {
  Rows rows(1);
  for (const int number : numbers) rows[0].push_back(Value::Integer(number));
  return rows;
}

/// True of these numbers as the only row.
std::function<bool(const Rows&)> Are(const std::vector<int>& expected) {
  return [expected](const Rows& rows) {
    return rows.size() == 1 && std::equal(rows[0].begin(), rows[0].end(), expected.begin(), expected.end(),
                                          [](const Value& a, int b) { return a.number == b; });
  };
}

TEST(TupleCount, ParsesWhatItPrints) {
  const auto counts = ParseCounts("--tuples", {"1", "1000", "1K", "64k", "16M", "3m", "1.5K"}, 1 << 30);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(*counts, (std::vector<uint64_t>{1, 1000, 1024, 65'536, 16 * kMega, 3 * kMega, 1536}));
  std::string labels;
  for (const uint64_t count : *counts) labels += CountLabel(count) + " ";
  EXPECT_EQ(labels, "1 1000 1K 64K 16M 3M 1536 ");
}

TEST(TupleCount, RefusesWhatIsNoCount) {
  for (const char* wrong :
       {"", "M", "0", "0K", "-1", "1.5", "16G", "16 MB", "2048M", "99999999999999999999"}) {
    const auto counts = ParseCounts("--groups", {"1", wrong}, 1 << 30);
    EXPECT_TRUE(absl::IsInvalidArgument(counts.status())) << wrong;
    EXPECT_NE(counts.status().message().find("--groups="), std::string::npos) << counts.status();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseCounts("--tuples", {}, 10).status()));
}

TEST(Turns, AreTakenInOrderAndTheFirstOnlyWarmsUp) {
  std::string order;
  double time = 0;
  const auto contender = [&](const std::string& name) {
    return Contender{name, [&, name]() -> absl::StatusOr<Turn> {
                       order += name;
                       return Turn{Numbers({7, 8}), ++time};
                     }};
  };
  const auto times = TakeTurns({contender("a"), contender("b")}, Are({7, 8}), {.repeat = 3});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(order, "abababab");
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[1].times_ms, (std::vector<double>{4, 6, 8}));
  EXPECT_EQ((*times)[0].median_ms(), 5);
  EXPECT_EQ((*times)[0].min_ms(), 3);
  EXPECT_TRUE((*times)[0].equal && (*times)[1].equal);
}

TEST(Turns, OneWrongAnswerIsRemembered) {
  int turns = 0;
  const Contender odd{"odd", [&]() -> absl::StatusOr<Turn> {
                        return Turn{Numbers({++turns == 1 ? 2 : 1}), 1};
                      }};
  const Contender longer{"longer", []() -> absl::StatusOr<Turn> { return Turn{Numbers({1, 1}), 1}; }};
  const Contender bound{"bound", []() -> absl::StatusOr<Turn> { return Turn{{}, 1}; }, /*answers=*/false};
  const auto times = TakeTurns({odd, longer, bound}, Are({1}), {.repeat = 2});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_FALSE((*times)[0].equal) << "the warm-up counts too";
  EXPECT_FALSE((*times)[1].equal);
  EXPECT_TRUE((*times)[2].equal) << "it has no rows";
}

TEST(Turns, AnErrorNamesItsContender) {
  const Contender failing{"rrj", []() -> absl::StatusOr<Turn> { return absl::InternalError("no memory"); }};
  const auto times = TakeTurns({failing}, Are({}), {});
  EXPECT_TRUE(absl::IsInternal(times.status()));
  EXPECT_EQ(times.status().message(), "rrj: no memory");
}

TEST(Turns, WhoNeedsMoreMemoryThanThereIsTakesNoTurnMore) {
  int asked = 0;
  const Contender large{"large", [&]() -> absl::StatusOr<Turn> {
                          ++asked;
                          return absl::ResourceExhaustedError("too large");
                        }};
  const Contender small{"small", []() -> absl::StatusOr<Turn> { return Turn{Numbers({1}), 2}; }};
  const auto times = TakeTurns({large, small}, Are({1}), {.repeat = 2});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ((*times)[0].refusal, "too large");
  EXPECT_TRUE((*times)[0].times_ms.empty());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ((*times)[1].times_ms.size(), 2u);
}

TEST(Turns, EndBetweenTwoWhenCancelled) {
  int turns = 0;
  const Contender asked{"a", [&]() -> absl::StatusOr<Turn> {
                          ++turns;
                          return Turn{{}, 1};
                        }};
  const auto times =
      TakeTurns({asked}, Are({}), {.repeat = 5, .proceed = [&](const std::string&) { return turns < 2; }});
  EXPECT_TRUE(absl::IsCancelled(times.status()));
  EXPECT_EQ(turns, 2);
}

TEST(AlgorithmReport, RowsHaveSettingsSpeedAndRounds) {
  std::vector<CaseFigures> figures = {JoinFigures(kMega, 0.5, 1, {{"rrj", 100}, {"duckdb", 300}})};
  figures[0].contenders[1].equal = false;
  const Json rows = FigureRows(figures);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["algorithm"], "rrj");
  EXPECT_EQ(rows[0]["zipf"], 1.0);
  EXPECT_EQ(rows[0]["median_ms"], 100.0);
  EXPECT_EQ(rows[0]["min_ms"], 50.0);
  EXPECT_EQ(rows[0]["million_tuples_per_second"], 20.972) << "of both relations";
  EXPECT_EQ(rows[0]["rounds_ms"].size(), 3u);
  EXPECT_EQ(rows[0]["answer"], "equal");
  EXPECT_EQ(rows[1]["answer"], "DIFFERENT");
  EXPECT_FALSE(AllEqual(figures));
  EXPECT_NE(SpeedChart("Joins", figures).find("duckdb"), std::string::npos);
}

TEST(AlgorithmReport, JoinSummaryIsOfTheMostTuplesUniformAndSelective) {
  const std::vector<CaseFigures> figures = {
      JoinFigures(kMega, 1, 0, {{"rrj", 10}, {"ghj", 10}}),
      JoinFigures(16 * kMega, 0.25, 0, {{"rrj", 1}, {"ghj", 100}}),
      JoinFigures(16 * kMega, 1, 1, {{"rrj", 125}, {"ghj", 1}}),
      JoinFigures(16 * kMega, 1, 0, {{"rrj", 100}, {"ghj", 250}, {"ghj_bloom", 150}, {"duckdb", 300}})};
  const Json summary = JoinSummary(figures);
  EXPECT_EQ(summary["rrj_over_ghj"], 2.5);
  EXPECT_EQ(summary["rrj_over_ghj_bloom"], 1.5);
  EXPECT_EQ(summary["rrj_over_duckdb"], 3.0);
  EXPECT_EQ(summary["uniform_over_zipf_1"], 0.8);
  EXPECT_FALSE(summary.contains("rrj_over_rdma_ghj")) << "it did not take part";
  EXPECT_EQ(summary["rrj_over_ghj_1m"], 1.0);
  EXPECT_EQ(summary["rrj_over_ghj_16m"], 2.5);
  EXPECT_FALSE(summary.contains("uniform_over_zipf_1_1m"));
}

TEST(AlgorithmReport, OneSizeNeedsNoKeysOfItsOwn) {
  EXPECT_EQ(JoinSummary({JoinFigures(kMega, 1, 0, {{"rrj", 10}, {"duckdb", 20}})}).dump(),
            R"({"rrj_over_duckdb":2.0})");
  EXPECT_EQ(JoinSummary({JoinFigures(kMega, 1, 0, {{"duckdb", 20}, {"ghj", 5}})}).dump(), "{}")
      << "without rrj there is nothing to compare";
}

TEST(AlgorithmReport, AggregateSummaryNamesTheGroups) {
  const std::vector<CaseFigures> figures = {
      GroupFigures(kMega, 1024, {{"rdma", 1}, {"dist", 50}}),
      GroupFigures(128 * kMega, 1024, {{"rdma", 100}, {"dist", 95}, {"duckdb", 200}}),
      GroupFigures(128 * kMega, 16 * kMega, {{"rdma", 200}, {"dist", 800}}),
      GroupFigures(128 * kMega, 64 * kMega, {{"rdma", 250}})};
  const Json summary = AggregateSummary(figures);
  EXPECT_EQ(summary["rdma_over_dist_1k"], 0.95);
  EXPECT_EQ(summary["rdma_over_dist_16m"], 4.0);
  EXPECT_EQ(summary["rdma_over_duckdb_1k"], 2.0);
  EXPECT_EQ(summary["time_1k_over_64m"], 0.4);
  EXPECT_FALSE(summary.contains("rdma_over_duckdb_16m"));
}

}  // namespace
}  // namespace nam::bench
