// Checks which bars keep the order of the redesign paper's figure 8.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/algorithm_report.h"

namespace nam::bench {
namespace {

using ContenderMs = std::vector<std::pair<std::string, double>>;

CaseFigures Case(const Json& settings, const ContenderMs& ms) {
  CaseFigures figures{.title = "a case", .settings = settings, .tuples = 1};
  for (const auto& [name, time] : ms) figures.contenders.push_back({name, {time}});
  return figures;
}
CaseFigures JoinAtSelectivity(double selectivity, const ContenderMs& ms) {
  return Case({{"tuples", 1}, {"selectivity", selectivity}, {"zipf", 0.0}}, ms);
}
CaseFigures AggregateOfGroups(uint64_t groups, const ContenderMs& ms) {
  return Case({{"tuples", 1}, {"groups", groups}}, ms);
}

TEST(Figure8, JoinsInThePapersOrder) {
  const Json summary =
      Figure8aSummary({JoinAtSelectivity(0.25, {{"rrj", 2}, {"rdma_ghj", 3}, {"ghj", 9}, {"ghj_bloom", 4}}),
                       JoinAtSelectivity(0.75, {{"rrj", 2}, {"rdma_ghj", 3}, {"ghj", 8}, {"ghj_bloom", 8}}),
                       JoinAtSelectivity(1, {{"rrj", 2}, {"rdma_ghj", 3}, {"ghj", 8}, {"ghj_bloom", 10}})});
  for (const char* key : {"paper_order_at_25", "paper_order_at_75", "paper_order_at_100", "paper_order"})
    EXPECT_EQ(summary.at(key), true) << key;
  EXPECT_EQ(summary.at("rrj_over_ghj_at_25"), 4.5);
  EXPECT_EQ(summary.at("rrj_over_ghj_bloom_at_100"), 5);
}

TEST(Figure8, AJoinOutOfTheOrderIsTold) {
  const ContenderMs in_order = {{"rrj", 2}, {"rdma_ghj", 3}, {"ghj", 9}, {"ghj_bloom", 4}};
  for (const auto& [selectivity, ms] : std::vector<std::pair<double, ContenderMs>>{
           {0.5, {{"rrj", 3}, {"rdma_ghj", 2}, {"ghj", 9}, {"ghj_bloom", 4}}},  // RRJ behind RDMA GHJ
           {0.5, {{"rrj", 2}, {"rdma_ghj", 3}, {"ghj", 2.5}}},                  // RDMA GHJ behind GHJ
           {0.5, {{"rrj", 2}, {"rdma_ghj", 5}, {"ghj", 9}, {"ghj_bloom", 4}}},  // behind the reduced one
           {0.5, {{"rrj", 2}, {"ghj", 8}, {"ghj_bloom", 9}}},   // a reduction that does not pay
           {1, {{"rrj", 2}, {"ghj", 9}, {"ghj_bloom", 8}}}}) {  // one that pays without need
    const Json summary =
        Figure8aSummary({JoinAtSelectivity(0.25, in_order), JoinAtSelectivity(selectivity, ms)});
    EXPECT_EQ(summary.at(selectivity == 1 ? "paper_order_at_100" : "paper_order_at_50"), false) << ms.size();
    EXPECT_EQ(summary.at("paper_order_at_25"), true);
    EXPECT_EQ(summary.at("paper_order"), false);
  }
}

TEST(Figure8, NothingIsSaidOfWhatDidNotTakePart) {
  const Json summary = Figure8aSummary({JoinAtSelectivity(0.5, {{"rrj", 2}})});
  EXPECT_FALSE(summary.contains("paper_order"));
  EXPECT_FALSE(summary.contains("rrj_over_ghj_at_50"));
}

TEST(Figure8, GroupsInThePapersOrder) {
  const Json summary = Figure8bSummary({AggregateOfGroups(1, {{"rdma", 1.09}, {"dist", 1}}),
                                        AggregateOfGroups(1024, {{"rdma", 1}, {"dist", 1}}),
                                        AggregateOfGroups(1 << 20, {{"rdma", 2}, {"dist", 3}})});
  for (const char* key : {"paper_order_1", "paper_order_1k", "paper_order_1m", "paper_order"})
    EXPECT_EQ(summary.at(key), true) << key;
  EXPECT_EQ(summary.at("rdma_over_dist_1m"), 1.5);
}

TEST(Figure8, GroupsOutOfTheOrderAreTold) {
  const Json summary = Figure8bSummary({AggregateOfGroups(1, {{"rdma", 1.2}, {"dist", 1}}),
                                        AggregateOfGroups(1 << 20, {{"rdma", 1.05}, {"dist", 1}})});
  for (const char* key : {"paper_order_1", "paper_order_1m", "paper_order"})
    EXPECT_EQ(summary.at(key), false) << key;
}

}  // namespace
}  // namespace nam::bench
