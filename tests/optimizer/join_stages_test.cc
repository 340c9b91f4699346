#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "optimizer/lower_tree.h"
#include "tests/optimizer/staged_plans.h"

/// Joins of large sides: by parts, or streamed between servers, and which of them is chosen.
namespace nam::optimizer {
namespace {

using plan::JoinAlgorithm;

TEST(JoinStages, BuildSidesThatDoNotFitComeByParts) {
  const std::string query =
      "select * from (select c_region, sum(b.lo_revenue) from lineorder a join lineorder b on a.lo_orderkey "
      "= b.lo_orderkey join customer on a.lo_custkey = c_custkey group by 1) g";
  const LoweredTree whole = Joined(query, 4096 * kMiB, {}, JoinAlgorithm::kPipelined);
  EXPECT_EQ(whole.lowered.stages.size(), 1u) << TextOf(whole);
  const LoweredTree tree = Joined(query, 16 * kMiB);
  ASSERT_EQ(tree.lowered.stages.size(), 3u) << TextOf(tree);
  const plan::JoinSource* join = JoinOfStage(tree, 2);
  ASSERT_NE(join, nullptr) << TextOf(tree);
  EXPECT_EQ(tree.lowered.plan.pipelines[join->probe.build].stage, 0u) << "the build side comes first";
  EXPECT_EQ(tree.lowered.plan.pipelines[join->probed].stage, 1u);
  const auto& sink = std::get<plan::PartitionSink>(tree.lowered.plan.pipelines[join->probed].sink);
  EXPECT_EQ(sink.parts, tree.lowered.stages[2].parts);
  for (const uint32_t side : {0, 1}) EXPECT_TRUE(tree.lowered.stages[side].barrier);
  EXPECT_FALSE(tree.lowered.stages[2].barrier);
  EXPECT_NE(TextOf(tree).find(absl::StrCat(" by ", sink.parts, " parts of (lo_orderkey")), std::string::npos)
      << TextOf(tree);
  // Each join is planned anew in its original form.
  const LoweredTree again = Joined(query, 16 * kMiB, {{0, {.rows = 7e6, .by_parts = true}}});
  EXPECT_EQ(Beginning(tree, 1), Beginning(again, 1));
  EXPECT_EQ(TextOf(Joined(query, 16 * kMiB, {}, JoinAlgorithm::kPipelined)), TextOf(whole));
}

/// There are as few parts as the work needs, whatever the rows.
TEST(JoinStages, GraceHashJoinsHaveLargeParts) {
  const std::string query =
      "select count(*) from lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey";
  const auto parts = [&](JoinAlgorithm join, double workers) {
    Tables tables;
    const auto tree =
        LowerTree(Bound(query, tables), {.join = join, .cluster = {.servers = 1, .threads = workers}});
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.ok() && tree->lowered.stages.size() == 3 ? tree->lowered.stages[2].parts : 0;
  };
  EXPECT_EQ(parts(JoinAlgorithm::kRdmaGhj, 1), 8u);
  EXPECT_EQ(parts(JoinAlgorithm::kRdmaGhj, 8), 16u);
  EXPECT_EQ(parts(JoinAlgorithm::kRdmaGhj, 12), 32u);
  EXPECT_EQ(parts(JoinAlgorithm::kRdmaGhj, 1 << 20), 1024u);
  EXPECT_GE(parts(JoinAlgorithm::kRrj, 8), 128u);
  EXPECT_EQ(parts(JoinAlgorithm::kRrj, 8), parts(JoinAlgorithm::kRrj, 1));
}

LoweredTree Exchanged(const std::string& text, JoinAlgorithm join = JoinAlgorithm::kGhj) {
  Tables tables;
  auto lowered = LowerTree(Bound(text, tables), {.aggregate = plan::AggregateAlgorithm::kAuto, .join = join});
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

/// There is one stage: both sides are sent, received, built and probed, and the following steps run in it.
TEST(JoinStages, JoinsByExchangeAreOneStreamedStage) {
  const LoweredTree tree = Exchanged(
      "select c_region, sum(b.lo_revenue) from lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey "
      "left join customer on a.lo_custkey = c_custkey group by 1");
  ASSERT_EQ(tree.lowered.stages.size(), 1u) << TextOf(tree);
  EXPECT_TRUE(tree.lowered.stages[0].streamed);
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  std::vector<uint32_t> sent, received;
  uint32_t built = 0;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    if (plan.pipelines[p].stage != 0) continue;
    if (const auto* send = std::get_if<plan::ExchangeSend>(&plan.pipelines[p].sink)) {
      sent.push_back(send->exchange);
      EXPECT_EQ(send->keys.size(), 1u);
    }
    if (const auto* receive = std::get_if<plan::ExchangeReceive>(&plan.pipelines[p].source)) {
      received.push_back(receive->exchange);
      if (std::holds_alternative<plan::BuildSink>(plan.pipelines[p].sink)) built = p;
    }
  }
  EXPECT_EQ(sent, received) << TextOf(tree);
  EXPECT_EQ(sent.size(), 2u) << TextOf(tree);
  const plan::Pipeline& claimed = plan.pipelines[plan.stages[0].claimed];
  EXPECT_TRUE(std::holds_alternative<plan::ExchangeReceive>(claimed.source)) << TextOf(tree);
  ASSERT_EQ(claimed.steps.size(), 2u) << "the other join goes on with what comes of the first";
  EXPECT_EQ(std::get<plan::ProbeStep>(claimed.steps[0]).build, built);
  EXPECT_NE(GroupsOf(tree, 0), nullptr);
}

/// … where none of them leaves the join alone.
TEST(JoinStages, BloomFiltersDropRowsBeforeTheyAreSent) {
  for (const std::string kind : {"", "left", "full"}) {
    const LoweredTree tree = Exchanged(
        "select a.lo_tax from lineorder a " + kind + " join lineorder b on a.lo_orderkey = b.lo_orderkey",
        JoinAlgorithm::kGhjBloom);
    const JoinChoice& join = tree.lowered.joins.at(0);
    EXPECT_EQ(join.algorithm, kind.empty() ? JoinAlgorithm::kGhjBloom : JoinAlgorithm::kGhj);
    std::vector<uint32_t> builds;
    for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines)
      if (const auto* send = std::get_if<plan::ExchangeSend>(&pipeline.sink); send && send->filtered_by)
        builds.push_back(*send->filtered_by);
    EXPECT_EQ(builds, kind.empty() ? std::vector{join.build} : std::vector<uint32_t>()) << TextOf(tree);
  }
}

/// Joins about whose build side a fact is needed, those without equal keys, and those of groups.
TEST(JoinStages, OtherJoinsDoNotGoByExchange) {
  for (const char* query :
       {"select count(*) from customer where nullif(c_custkey, 5) not in (select nullif(lo_custkey, 3) from "
        "lineorder)",
        "select count(*) from customer left join supplier on c_custkey < s_suppkey",
        "select count(*) from (select lo_orderkey as k from lineorder group by 1) a join (select lo_orderkey "
        "as k from lineorder group by 1) b on a.k = b.k"}) {
    const LoweredTree tree = Exchanged(query);
    for (const ServerStage& stage : tree.lowered.stages) EXPECT_FALSE(stage.streamed) << TextOf(tree);
  }
}

/// Rows with a NULL as a key are sent where the kind needs them.
TEST(JoinStages, NullKeysAreNotSentWhereTheyMatchNothing) {
  const auto filters = [](const std::string& kind) {
    const LoweredTree tree = Exchanged(
        absl::StrCat("select * from (select a.lo_tax from (select nullif(lo_custkey, 3) as k, lo_tax "
                     "from lineorder) a ",
                     kind, " join (select nullif(lo_custkey, 5) as k from lineorder) b on a.k = b.k) g"));
    EXPECT_TRUE(tree.lowered.stages[0].streamed) << TextOf(tree);
    int count = 0;
    for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines) {
      for (const plan::StepNode& step : pipeline.steps)
        count += std::holds_alternative<plan::FilterStep>(step);
    }
    return count;
  };
  EXPECT_EQ(filters(""), 2);
  EXPECT_EQ(filters("left"), 1);
  EXPECT_EQ(filters("right"), 1);
  EXPECT_EQ(filters("full"), 0);
}

/// Conditions that cannot be estimated leave few rows of each side, and nearly none of the join.
TEST(JoinStages, RowsOfAJoinByPartsMayBeMoreThanExpected) {
  std::string conditions;
  for (const char* const side : {"a", "b"}) {
    for (int i = 0; i < 4; ++i)
      absl::StrAppend(&conditions, conditions.empty() ? " where " : " and ", side, ".lo_tax + ", i, " >= 0");
  }
  const std::string query = absl::StrCat(
      "select * from (select a.lo_orderkey, count(*) from lineorder a join lineorder b on a.lo_orderkey = "
      "b.lo_orderkey",
      conditions, " group by 1) g");
  const LoweredTree tree = Joined(query, kMiB / 4);
  ASSERT_NE(JoinOfStage(tree, 2), nullptr) << TextOf(tree);
  const auto rows = [](const LoweredTree& of) {
    const plan::PhysicalPlan& plan = of.lowered.plan;
    return plan.pipelines[plan.stages[2].claimed].estimates[0].rows;
  };
  EXPECT_LT(rows(tree), 10'000) << TextOf(tree);
  EXPECT_GT(GroupsOf(tree, 2)->parts, 0u) << TextOf(tree);
  // Facts about a side that has been computed are more precise.
  for (uint32_t side : {0, 1}) {
    const double expected = tree.lowered.stages[side].expected.rows;
    const LoweredTree more = Joined(query, kMiB / 4, {{side, {.rows = 50 * expected, .by_parts = true}}});
    EXPECT_NEAR(rows(more), 50 * rows(tree), 1) << TextOf(more);
  }
}

TEST(JoinStages, JoinsOfGroupsByPartsStayOnServers) {
  const std::string groups = "(select lo_orderkey as k, count(*) as n from lineorder group by 1)";
  for (const std::string kind : {"", "left", "right", "full"}) {
    const std::string query = absl::StrCat("select * from (select count(*) from ", groups, " a ", kind,
                                           " join ", groups, " b on a.k = b.k) g");
    const LoweredTree tree = Joined(query, 4096 * kMiB);
    ASSERT_EQ(tree.lowered.stages.size(), 5u) << query << TextOf(tree);
    EXPECT_NE(JoinOfStage(tree, 4), nullptr) << TextOf(tree);
    EXPECT_EQ(Joined(query, 4096 * kMiB, {}, JoinAlgorithm::kPipelined).lowered.stages.size(), 4u)
        << "the client joins";
  }
}

/// Only sides with keys can be streamed.
TEST(JoinStages, CrossJoinsDoNotGoByParts) {
  const LoweredTree tree = Joined("select count(*) from customer left join supplier on c_custkey < s_suppkey",
                                  kMiB, {}, JoinAlgorithm::kRrj);
  for (uint32_t s = 0; s < tree.lowered.stages.size(); ++s)
    EXPECT_EQ(JoinOfStage(tree, s), nullptr) << TextOf(tree);
}

/// The build side reports, beside its parts, whether it has a NULL, and the whole probe side is there.
TEST(JoinStages, InAndNotInByTheKeyCountNullsOfTheirBuildSide) {
  for (const char* query :
       {"select count(*) from customer where nullif(c_custkey, 5) not in (select nullif(lo_custkey, 3) from "
        "lineorder)",
        "select count(*) from customer where nullif(c_custkey, 5) in (select nullif(lo_custkey, 3) from "
        "lineorder) or c_custkey < 7"}) {
    const LoweredTree tree = Joined(query, kMiB);
    ASSERT_GE(tree.lowered.stages.size(), 3u) << TextOf(tree);
    const plan::JoinSource* join = JoinOfStage(tree, 2);
    ASSERT_NE(join, nullptr) << TextOf(tree);
    const auto& pipelines = tree.lowered.plan.pipelines;
    for (const uint32_t side : {join->probed, join->probe.build}) {
      EXPECT_EQ(std::get<plan::PartitionSink>(pipelines[side].sink).counts_nulls, side != join->probed);
      for (const plan::StepNode& step : pipelines[side].steps)
        EXPECT_FALSE(std::holds_alternative<plan::FilterStep>(step)) << TextOf(tree);
    }
    EXPECT_NE(TextOf(tree).find(" and count NULLs"), std::string::npos) << TextOf(tree);
  }
}

/// Rows with a NULL as a key are written where the kind needs them.
TEST(JoinStages, NullKeysAreLeftOutWhereTheyMatchNothing) {
  const auto filtered = [](const std::string& kind) {
    const LoweredTree tree = Joined(
        absl::StrCat("select * from (select a.lo_tax from (select nullif(lo_custkey, 3) as k, lo_tax "
                     "from lineorder) a ",
                     kind, " join (select nullif(lo_custkey, 5) as k from lineorder) b on a.k = b.k) g"),
        kMiB, {}, JoinAlgorithm::kRrj);
    size_t filters = 0;
    for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines) {
      if (!std::holds_alternative<plan::PartitionSink>(pipeline.sink)) continue;
      filters += static_cast<size_t>(std::count_if(
          pipeline.steps.begin(), pipeline.steps.end(),
          [](const plan::StepNode& step) { return std::holds_alternative<plan::FilterStep>(step); }));
    }
    return filters;
  };
  EXPECT_EQ(filtered(""), 2u);
  EXPECT_EQ(filtered("left"), 1u);
  EXPECT_EQ(filtered("right"), 1u);
  EXPECT_EQ(filtered("full"), 0u);
}

/// Sides that are large for the caches and the network are partitioned though they would fit; dimensions are
/// not.
TEST(JoinStages, TheCheapestJoinIsChosenAndNoted) {
  const std::string query =
      "select count(*) from lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey join customer on "
      "a.lo_custkey = c_custkey";
  const LoweredTree tree = Joined(query, 4096 * kMiB);
  ASSERT_EQ(tree.lowered.joins.size(), 2u) << TextOf(tree);
  for (const JoinChoice& join : tree.lowered.joins) {
    const JoinAlgorithm cheapest = CheapestOf(join.costs);
    const double ms = CostOf(join.algorithm, join.costs), least_ms = CostOf(cheapest, join.costs);
    EXPECT_EQ(join.why, join.algorithm == cheapest ? Why::kCheapest : Why::kSafe);
    EXPECT_TRUE(join.algorithm == cheapest || plan::IsStreamed(cheapest));
    EXPECT_LT(ms, kStreamedGain * least_ms);
    const plan::Pipeline& build = tree.lowered.plan.pipelines[join.build];
    const bool by_parts = std::holds_alternative<plan::PartitionSink>(build.sink);
    EXPECT_EQ(join.algorithm == JoinAlgorithm::kPipelined, !by_parts) << TextOf(tree);
    EXPECT_TRUE(by_parts || std::holds_alternative<plan::BuildSink>(build.sink)) << TextOf(tree);
    EXPECT_TRUE(std::isfinite(CostOf(JoinAlgorithm::kGhj, join.costs)));
  }
  EXPECT_EQ(tree.lowered.joins[0].algorithm, JoinAlgorithm::kPipelined) << "customer";
  EXPECT_EQ(tree.lowered.joins[1].algorithm, JoinAlgorithm::kRrj);
  EXPECT_NE(JoinOfStage(tree, 2), nullptr);
  for (const JoinAlgorithm forced :
       {JoinAlgorithm::kRrj, JoinAlgorithm::kRdmaGhj, JoinAlgorithm::kPipelined}) {
    const LoweredTree of = Joined(query, 4096 * kMiB, {}, forced);
    ASSERT_EQ(of.lowered.joins.size(), 2u) << TextOf(of);
    for (const JoinChoice& join : of.lowered.joins) {
      EXPECT_EQ(join.algorithm, forced);
      EXPECT_EQ(join.why, Why::kForced);
    }
  }
  const LoweredTree crossed =
      Joined("select count(*) from customer left join supplier on c_custkey < s_suppkey", 4096 * kMiB, {},
             JoinAlgorithm::kRrj);
  ASSERT_EQ(crossed.lowered.joins.size(), 1u) << TextOf(crossed);
  EXPECT_EQ(crossed.lowered.joins[0].algorithm, JoinAlgorithm::kPipelined);
  EXPECT_EQ(crossed.lowered.joins[0].why, Why::kOnly) << "rrj is forced, and cannot make it";
  const LoweredTree large = Joined(query, kMiB);
  const JoinChoice& too_large = large.lowered.joins.back();
  EXPECT_EQ(too_large.why, Why::kTooLarge) << TextOf(large);
  EXPECT_EQ(too_large.no_exchange, NoExchange::kTooLarge);
  EXPECT_TRUE(std::isinf(CostOf(JoinAlgorithm::kGhj, too_large.costs))) << "it would have it in memory";
  const LoweredTree full =
      Joined("select count(*) from lineorder a full join lineorder b on a.lo_orderkey = b.lo_orderkey", kMiB);
  ASSERT_EQ(full.lowered.joins.size(), 1u) << TextOf(full);
  EXPECT_TRUE(std::isinf(CostOf(JoinAlgorithm::kGhj, full.lowered.joins[0].costs))) << "likewise";
}

TEST(JoinStages, ConstantsOfTheFabricDecide) {
  Tables tables;
  const std::string query =
      "select count(*) from lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey";
  LoweringOptions options{.join = JoinAlgorithm::kAuto};
  const auto algorithm = [&] {
    const auto tree = LowerTree(Bound(query, tables), options);
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.ok() ? tree->lowered.joins.at(0).algorithm : JoinAlgorithm::kAuto;
  };
  EXPECT_EQ(algorithm(), JoinAlgorithm::kRrj);
  options.cluster.servers = 16;
  options.cluster.constants.write_64k_byte_ps = 1e5;  // 10 MB/s
  EXPECT_TRUE(plan::IsStreamed(algorithm())) << "what is sent is not written";
  options.cluster.constants.send_byte_ps = options.cluster.constants.socket_byte_ps = 1e5;
  EXPECT_EQ(algorithm(), JoinAlgorithm::kPipelined);
  options.cluster.constants = {};
  options.cluster.constants.part_ps = 1e9;  // few parts pay
  options.cluster.constants.memory_access_ps = options.cluster.constants.l2_access_ps;
  EXPECT_NE(algorithm(), JoinAlgorithm::kRrj);
}

/// A streamed join has risks that it must be worth.
TEST(JoinStages, StreamedJoinsAreChosenIfTheyAreTwiceAsFast) {
  JoinCosts costs;
  costs.fill(std::numeric_limits<double>::infinity());
  CostOf(JoinAlgorithm::kPipelined, costs) = 30;
  CostOf(JoinAlgorithm::kRrj, costs) = 20;
  CostOf(JoinAlgorithm::kGhj, costs) = 11;
  const auto chosen = [&] { return ChooseJoin(JoinAlgorithm::kAuto, {}, costs); };
  EXPECT_EQ(chosen().algorithm, JoinAlgorithm::kRrj);
  EXPECT_EQ(chosen().why, Why::kSafe);
  CostOf(JoinAlgorithm::kGhjBloom, costs) = 10;
  EXPECT_EQ(chosen().algorithm, JoinAlgorithm::kGhjBloom);
  EXPECT_EQ(chosen().why, Why::kCheapest);
  const JoinChoice none = ChooseJoin(JoinAlgorithm::kAuto,
                                     {.no_exchange = NoExchange::kTooLarge, .build_too_large = true}, costs);
  EXPECT_EQ(none.algorithm, JoinAlgorithm::kRrj);
  EXPECT_EQ(none.why, Why::kTooLarge);
}

}  // namespace
}  // namespace nam::optimizer
