// Points of `nam bench choice`, and the report on the choices.
#include "bench/choice_report.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nam::bench {
namespace {

TEST(ChoicePoints, CoverSizesSelectivitiesSkewsAndFabrics) {
  const ChoicePointOptions options{.points = 60, .seed = 3};
  const std::vector<ChoicePoint> points = DrawChoicePoints(options);
  ASSERT_EQ(points.size(), 60u);
  int uniform = 0, shm = 0, small = 0, build_larger = 0;
  for (const ChoicePoint& point : points) {
    for (const uint64_t tuples : {point.join.tuples, point.join.s_tuples}) {
      EXPECT_GE(tuples, options.tuples_min);
      EXPECT_LE(tuples, options.tuples_max);
    }
    EXPECT_GE(point.join.selectivity, 0.05);
    EXPECT_LE(point.join.selectivity, 1);
    EXPECT_TRUE(point.join.zipf == 0 || (point.join.zipf >= 0.25 && point.join.zipf <= 1));
    uniform += point.join.zipf == 0;
    shm += point.fabric == "shm";
    small += point.join.tuples < (512 << 10);
    build_larger += point.join.tuples > point.join.s_tuples;
  }
  EXPECT_EQ(shm, 30);
  for (const int half : {uniform, small, build_larger}) {
    EXPECT_GT(half, 10);
    EXPECT_LT(half, 50);
  }
}

TEST(ChoicePoints, FollowFromTheSeed) {
  std::set<uint64_t> sizes;
  for (const uint64_t seed : {1, 1, 2}) {
    for (const ChoicePoint& point : DrawChoicePoints({.points = 10, .seed = seed}))
      sizes.insert(point.join.tuples);
  }
  EXPECT_EQ(sizes.size(), 20u);
}

ChoiceResult Result(const std::string& chosen, const std::vector<std::pair<std::string, double>>& ms) {
  CaseFigures figures;
  for (const auto& [name, time] : ms) figures.contenders.push_back({name, {time}});
  figures.plan = {{{"joins", {{{"algorithm", chosen}, {"estimated_ms", {{"ghj", 14}}}}}}}};
  return ResultOf({"shm", {.tuples = 1, .s_tuples = 2}}, std::move(figures));
}

TEST(ChoiceReport, CountsChoicesThatAreNearTheBest) {
  const std::vector<ChoiceResult> results = {
      Result("rrj", {{"rrj", 10}, {"ghj", 20}, {"auto", 11}}),
      Result("rrj", {{"rrj", 11}, {"ghj", 10}, {"auto", 13}}),
      Result("rrj", {{"rrj", 12}, {"ghj", 10}, {"auto", 10}}),
      Result("pipelined", {{"rrj", 12}, {"ghj", 10}, {"auto", 20}}),  // could not be forced
  };
  const Json summary = ChoiceSummary(results);
  EXPECT_EQ(summary.at("points"), 4);
  EXPECT_EQ(summary.at("within_15_percent"), 2);
  EXPECT_EQ(summary.at("auto_within_15_percent"), 2);
  EXPECT_EQ(summary.at("always_one_within_15_percent"), 3) << "ghj";
  EXPECT_EQ(summary.at("worst_over_best"), 2);
  const Json rows = ChoiceRows(results);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].at("s_tuples"), 2);
  EXPECT_EQ(rows[1].at("best"), "ghj");
  EXPECT_EQ(rows[1].at("chosen"), "rrj");
  EXPECT_EQ(rows[1].at("chosen_over_best"), 1.1);
  EXPECT_EQ(rows[1].at("auto_over_best"), 1.3);
  EXPECT_EQ(rows[1].at("ghj_ms"), 10);
  EXPECT_EQ(rows[1].at("ghj_estimated_ms"), 14);
}

TEST(ChoiceReport, AWrongAnswerIsSeen) {
  std::vector<ChoiceResult> results = {Result("rrj", {{"rrj", 10}, {"auto", 11}})};
  results[0].figures.contenders[0].equal = false;
  EXPECT_EQ(ChoiceRows(results)[0].at("answers"), "DIFFERENT");
}

}  // namespace
}  // namespace nam::bench
