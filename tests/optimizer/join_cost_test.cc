#include "optimizer/join_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace nam::optimizer {
namespace {

using catalog::FabricConstants;
using plan::JoinAlgorithm;

constexpr std::array kAlgorithms = {JoinAlgorithm::kPipelined, JoinAlgorithm::kRrj, JoinAlgorithm::kRdmaGhj,
                                    JoinAlgorithm::kGhj, JoinAlgorithm::kGhjBloom};
constexpr double kMillion = 1e6;

double Paper(JoinAlgorithm algorithm, double memory, double network, double selectivity = 1) {
  return CostOf(PassesOf(algorithm, selectivity),
                {.memory = memory, .network = network, .background = network});
}

/// The formulas of sections 5.1 and 5.2, for one byte.
TEST(JoinCost, EquationsOfThePaper) {
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kGhj, 3, 5), 4 * 3 + 5);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kGhjBloom, 3, 5, 0.25), 3 + 4 * 0.25 * 3 + 0.25 * 5);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kRdmaGhj, 3, 2), 3 * 3);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kRrj, 3, 2), 2 * 3);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kRrj, 3, 9), 2 * 9) << "the network is what takes longer";
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kPipelined, 3, 5), 0) << "not the paper's";
}

TEST(JoinCost, RatiosOfThePaperWhereMemoryAndNetworkCostTheSame) {
  const double rrj = Paper(JoinAlgorithm::kRrj, 1, 1);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kGhj, 1, 1) / rrj, 2.5);
  EXPECT_DOUBLE_EQ(Paper(JoinAlgorithm::kRdmaGhj, 1, 1) / rrj, 1.5);
}

/// … where no card moves bytes by itself.
TEST(JoinCost, BytesInTheBackgroundCostTheProcessorThatPostsThem) {
  const BytePasses passes = PassesOf(JoinAlgorithm::kRrj);
  EXPECT_DOUBLE_EQ(CostOf(passes, {.memory = 3, .background = 2, .overlapped = false}), 2 * 3 + 2 * 2);
}

TEST(JoinCost, ABloomFilterErrs) {
  EXPECT_DOUBLE_EQ(AfterBloom(0, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(AfterBloom(0.5, 0.1), 0.55);
  EXPECT_DOUBLE_EQ(AfterBloom(1, 0.1), 1);
}

TEST(JoinCost, AccessesAreThoseOfTheCacheThatTheWorkingSetFits) {
  const FabricConstants constants;
  EXPECT_DOUBLE_EQ(AccessPs(constants.l2_bytes, constants), constants.l2_access_ps);
  const double in_l3 = AccessPs(constants.l3_bytes, constants);
  EXPECT_GT(in_l3, 0.9 * constants.l3_access_ps);
  EXPECT_LE(in_l3, constants.l3_access_ps);
  EXPECT_GT(AccessPs(1000 * constants.l3_bytes, constants), 0.99 * constants.memory_access_ps);
  double before = 0;
  for (double bytes = 1; bytes < 1e12; bytes *= 1.3) {
    const double now = AccessPs(bytes, constants);
    EXPECT_GE(now, before) << bytes;
    EXPECT_LE(now, constants.memory_access_ps);
    before = now;
  }
}

JoinWork LargeToLarge() {
  return {.build = {.rows = 16 * kMillion, .source_ps = 16 * kMillion * 500},
          .probe = {.rows = 16 * kMillion, .source_ps = 16 * kMillion * 500}};
}

/// A dimension beside a fact table.
JoinWork FactWithDimension() {
  return {.build = {.rows = 30'000, .source_ps = 30'000 * 500},
          .probe = {.rows = 60 * kMillion, .source_ps = 60 * kMillion * 500}};
}

constexpr JoinParts kParts{.rrj = 512, .rdma_ghj = 8};

TEST(JoinCost, AllArePositiveAndAutoIsNone) {
  for (const JoinWork& work : {LargeToLarge(), FactWithDimension(), JoinWork()}) {
    const JoinCosts costs = CostsOf(work, kParts, {});
    for (const JoinAlgorithm algorithm : kAlgorithms) {
      EXPECT_GT(CostOf(algorithm, costs), 0) << plan::NameOf(algorithm);
      EXPECT_TRUE(std::isfinite(CostOf(algorithm, costs))) << plan::NameOf(algorithm);
    }
    EXPECT_TRUE(std::isinf(CostOf(JoinAlgorithm::kAuto, costs)));
  }
}

/// Nothing becomes cheaper when there is more of it.
TEST(JoinCost, MoreWorkCostsMore) {
  const std::vector<std::pair<std::string, std::function<void(JoinWork&, ClusterShape&)>>> more = {
      {"build rows", [](auto& work, auto&) { work.build.rows *= 2; }},
      {"probe rows", [](auto& work, auto&) { work.probe.rows *= 2; }},
      {"build bytes", [](auto& work, auto&) { work.build.row_bytes *= 4; }},
      {"probe bytes", [](auto& work, auto&) { work.probe.row_bytes *= 4; }},
      {"sources", [](auto& work, auto&) { work.build.source_ps *= 3; }},
      {"skew", [](auto& work, auto&) { work.heaviest = 0.9; }},
      {"less reduction", [](auto& work, auto&) { work.probe.matching = 1; }}};
  JoinWork work = LargeToLarge();
  work.probe.matching = 0.5;
  const ClusterShape cluster;
  const JoinCosts before = CostsOf(work, kParts, cluster);
  for (const auto& [what, change] : more) {
    JoinWork changed = work;
    ClusterShape of = cluster;
    change(changed, of);
    const JoinCosts after = CostsOf(changed, kParts, of);
    for (const JoinAlgorithm algorithm : kAlgorithms)
      EXPECT_GE(CostOf(algorithm, after), CostOf(algorithm, before))
          << what << " " << plan::NameOf(algorithm);
  }
}

TEST(JoinCost, EveryConstantThatIsMeasuredCounts) {
  for (const catalog::FabricConstant& constant : catalog::FabricConstantTable()) {
    ClusterShape slower;
    slower.constants.*constant.field *= 1.5;
    JoinWork direct = LargeToLarge();
    direct.direct = true;
    JoinWork in_session = LargeToLarge();
    in_session.whole_build = false;
    bool counts = false;
    for (const JoinWork& work : {LargeToLarge(), direct, in_session})
      counts |= CostsOf(work, kParts, slower) != CostsOf(work, kParts, {});
    const GroupWork groups{.rows = 100 * kMillion, .groups = 10 * kMillion};
    counts |= CostsOf(groups, slower).dist_ms != CostsOf(groups, {}).dist_ms;
    // Pages of parts have 64 KiB; the slower one of two ways to send is not taken.
    const std::string name = constant.name;
    EXPECT_EQ(counts, name != "write_2k_byte_ps" && name != "socket_byte_ps") << name;
  }
}

TEST(JoinCost, SmallBuildSidesArePipelined) {
  for (const double servers : {1.0, 2.0, 4.0, 16.0}) {
    for (const double threads : {1.0, 2.0, 16.0}) {
      for (const bool overlapped : {false, true}) {
        const ClusterShape cluster{.servers = servers, .threads = threads, .overlapped = overlapped};
        EXPECT_EQ(CheapestOf(CostsOf(FactWithDimension(), kParts, cluster)), JoinAlgorithm::kPipelined);
        EXPECT_EQ(
            CheapestOf(CostsOf(JoinWork{.build = {.rows = 1000}, .probe = {.rows = 1000}}, kParts, cluster)),
            JoinAlgorithm::kPipelined);
      }
    }
  }
}

/// Each of many servers would read and build all of it.
TEST(JoinCost, LargeSidesOfManyServersArePartitioned) {
  const ClusterShape cluster{.servers = 16, .threads = 4, .overlapped = true};
  JoinWork work = LargeToLarge();
  work.build.rows = work.probe.rows = 1e9;
  const JoinCosts costs = CostsOf(work, {.rrj = 1024, .rdma_ghj = 128}, cluster);
  EXPECT_NE(CheapestOf(costs), JoinAlgorithm::kPipelined);
  EXPECT_LT(CostOf(JoinAlgorithm::kRrj, costs), CostOf(JoinAlgorithm::kRdmaGhj, costs));
  EXPECT_LT(CostOf(JoinAlgorithm::kRrj, costs), CostOf(JoinAlgorithm::kGhj, costs));
}

TEST(JoinCost, TheSessionIsNoPlaceForLargeSides) {
  JoinWork work = LargeToLarge();
  work.whole_build = false;
  EXPECT_NE(CheapestOf(CostsOf(work, kParts, {})), JoinAlgorithm::kPipelined);
}

/// A filter pays where few rows of the probe side have partners and the network is slow.
TEST(JoinCost, ReductionPaysOnSlowNetworks) {
  ClusterShape slow{.servers = 4};
  slow.constants.send_byte_ps = slow.constants.socket_byte_ps = 8'000;  // Ethernet of 1 Gbit/s
  JoinWork work = LargeToLarge();
  work.probe.row_bytes = 64;
  work.probe.matching = 0.1;
  const JoinCosts few = CostsOf(work, kParts, slow);
  EXPECT_LT(CostOf(JoinAlgorithm::kGhjBloom, few), CostOf(JoinAlgorithm::kGhj, few));
  work.probe.matching = 1;
  const JoinCosts all = CostsOf(work, kParts, slow);
  EXPECT_GT(CostOf(JoinAlgorithm::kGhjBloom, all), CostOf(JoinAlgorithm::kGhj, all));
  work.probe.matching = 0.1;
  work.drops_probe = false;
  const JoinCosts kept = CostsOf(work, kParts, slow);
  EXPECT_GT(CostOf(JoinAlgorithm::kGhjBloom, kept), CostOf(JoinAlgorithm::kGhj, kept));
}

TEST(GroupCost, FewGroupsAreAlikeAndManyGoByParts) {
  const ClusterShape cluster{.servers = 4, .threads = 4};
  for (const double groups : {1.0, 1'000.0, 10'000.0}) {
    const GroupCosts costs = CostsOf(GroupWork{.rows = 128 * kMillion, .groups = groups}, cluster);
    EXPECT_DOUBLE_EQ(costs.rdma_ms, costs.dist_ms) << "an attempt leaves them as its result";
  }
  const GroupCosts many = CostsOf(GroupWork{.rows = 128 * kMillion, .groups = 16 * kMillion}, cluster);
  EXPECT_GT(many.dist_ms, 3 * many.rdma_ms);
  double before = 0;
  for (double groups = 1; groups < 1e8; groups *= 2) {
    const GroupCosts costs = CostsOf(GroupWork{.rows = 128 * kMillion, .groups = groups}, cluster);
    EXPECT_GE(costs.dist_ms, before) << groups;
    before = costs.dist_ms;
  }
}

}  // namespace
}  // namespace nam::optimizer
