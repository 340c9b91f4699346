#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "optimizer/lower_tree.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "plan/codec.h"
#include "plan/print.h"
#include "sql/logical_binder.h"
#include "ssb/queries.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/logical_results.h"

/// Plans of several stages of servers, made anew with what came of those that have run.
namespace nam::optimizer {
namespace {

using plan::AggregateAlgorithm;
using plan::JoinAlgorithm;

/// The fake tables with rows and distinct values as of the benchmark at scale factor 1.
class Tables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto plain, fake_.Find(name));
    auto table = std::make_shared<proto::Table>(*plain);
    table->set_allocation(7);
    const std::map<std::string, uint64_t> rows = {{"lineorder", 6'001'215},
                                                  {"customer", 30'000},
                                                  {"supplier", 2'000},
                                                  {"part", 200'000},
                                                  {"date", 2'557}};
    const std::map<std::string, uint64_t> distinct = {{"lo_orderkey", 1'500'000}, {"lo_linenumber", 7},
                                                      {"lo_custkey", 20'000},     {"lo_partkey", 200'000},
                                                      {"lo_suppkey", 2'000},      {"lo_orderdate", 2406},
                                                      {"c_custkey", 30'000},      {"lo_revenue", 3'000'000}};
    const auto known = rows.find(name);
    table->set_rows(known == rows.end() ? 100 : known->second);
    for (proto::Column& column : *table->mutable_columns()) {
      const auto found = distinct.find(column.name());
      column.set_distinct(found == distinct.end() ? 7 : found->second);
      column.set_min(0);
      column.set_max(static_cast<int64_t>(table->rows()));
    }
    return table;
  }
  std::vector<std::string> Names() override { return fake_.Names(); }

 private:
  sql::FakeTables fake_;
};

plan::logical::Query Bound(const std::string& text, sql::TableSource& tables) {
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  EXPECT_EQ(Unnest(*query), absl::OkStatus()) << text;
  PushFilters(*query);
  return *std::move(query);
}

LoweredTree Lowered(const std::string& text, const StageFacts& facts = {}) {
  Tables tables;
  absl::StatusOr<LoweredTree> lowered =
      LowerTree(Bound(text, tables), {.aggregate = AggregateAlgorithm::kAuto}, facts);
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

std::string TextOf(const LoweredTree& tree) {
  const auto name = [&](uint32_t table, uint32_t column) {
    return tree.lowered.tables[table]->columns(static_cast<int>(column)).name();
  };
  return absl::StrJoin(plan::Print(tree.lowered.plan, name), "\n") + "\n";
}

/// What a server is told of the first `stages` stages.
std::string Beginning(const LoweredTree& tree, size_t stages) {
  std::string out;
  for (const plan::TableRef& table : tree.lowered.plan.tables) {
    if (stages == 0) break;
    absl::StrAppend(&out, table.name, " ");
  }
  for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines) {
    if (pipeline.stage >= stages) continue;
    plan::PhysicalPlan one;
    one.pipelines.push_back(pipeline);
    out += plan::ToProto(one).SerializeAsString();
  }
  return out;
}

const plan::AggregateSink* GroupsOf(const LoweredTree& tree, uint32_t stage) {
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  return std::get_if<plan::AggregateSink>(&plan.pipelines[plan.stages[stage].claimed].sink);
}

bool ClaimsParts(const LoweredTree& tree, uint32_t stage) {
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  return std::holds_alternative<plan::PartitionSource>(plan.pipelines[plan.stages[stage].claimed].source);
}

constexpr char kManyGroups[] =
    "select * from (select lo_orderkey, lo_linenumber, sum(lo_revenue) as s from lineorder group by 1, 2) g "
    "order by s desc limit 5";

TEST(Stages, ManyGroupsGoByPartsAndWhatFollowsStaysOnServers) {
  const LoweredTree tree = Lowered(kManyGroups);
  ASSERT_EQ(tree.lowered.stages.size(), 2u) << TextOf(tree);
  EXPECT_TRUE(tree.lowered.stages[0].barrier);
  EXPECT_TRUE(tree.lowered.stages[0].expected.by_parts);
  ASSERT_NE(GroupsOf(tree, 0), nullptr);
  EXPECT_EQ(GroupsOf(tree, 0)->parts, tree.lowered.stages[1].parts);
  EXPECT_GE(GroupsOf(tree, 0)->parts, 256u) << "parts of some ten thousand groups";
  EXPECT_LE(GroupsOf(tree, 0)->parts, 1024u);
  ASSERT_TRUE(ClaimsParts(tree, 1)) << TextOf(tree);
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  const auto* result = std::get_if<plan::ResultSink>(&plan.pipelines[plan.stages[1].claimed].sink);
  ASSERT_NE(result, nullptr) << TextOf(tree);
  EXPECT_EQ(result->limit, 5);
  EXPECT_EQ(result->order.size(), 1u);
  EXPECT_FALSE(tree.lowered.stages[1].barrier) << "its rows go to the session as they come";
}

TEST(Stages, GroupsThatCameToFewAreMergedInTheSession) {
  const LoweredTree before = Lowered(kManyGroups);
  const LoweredTree few = Lowered(kManyGroups, {{0, {.rows = 40, .by_parts = false}}});
  ASSERT_EQ(few.lowered.stages.size(), 1u) << TextOf(few);
  EXPECT_EQ(Beginning(before, 1), Beginning(few, 1));
  const LoweredTree many = Lowered(kManyGroups, {{0, {.rows = 6'001'215, .by_parts = true}}});
  EXPECT_EQ(TextOf(many), TextOf(before));
}

/// Their keys have so few values that no filter's estimate matters; or so few rows are expected that an
/// estimate would have to be off by more than 100.
TEST(Stages, FewGroupsTakeNoParts) {
  for (const char* query :
       {"select lo_linenumber, sum(lo_revenue) from lineorder group by 1",
        "select distinct lo_linenumber, lo_quantity from lineorder", "select count(*) from lineorder",
        "select c_custkey % 2, count(*) from customer where c_custkey < 0 group by 1 having count(*) > 1 ",
        "select c_custkey % 2, count(*) from customer where c_custkey < 20000 group by 1"}) {
    const LoweredTree tree = Lowered(absl::StrCat("select * from (", query, ") g"));
    const bool large = absl::StrContains(query, "20000");
    ASSERT_NE(GroupsOf(tree, 0), nullptr) << query;
    EXPECT_EQ(GroupsOf(tree, 0)->parts > 0, large) << TextOf(tree);
    EXPECT_EQ(tree.lowered.stages[0].barrier, large) << query;
  }
}

TEST(Stages, GroupsOfGroupsAreTwoStages) {
  const std::string query =
      "select n, count(*) from (select lo_orderkey, count(*) as n from lineorder group by 1 having count(*) "
      "> 2) g group by n";
  const LoweredTree tree =
      Lowered(query, {{0, {.rows = 1.5e6, .by_parts = true}}, {1, {.rows = 7, .by_parts = false}}});
  ASSERT_EQ(tree.lowered.stages.size(), 2u) << TextOf(tree);
  ASSERT_NE(GroupsOf(tree, 1), nullptr) << TextOf(tree);
  EXPECT_EQ(GroupsOf(tree, 1)->phase, plan::AggregateSink::Phase::kPartial);
}

TEST(Stages, DistinctValuesOfOneArgumentGoByParts) {
  for (const char* query : {"select count(distinct lo_orderkey) from lineorder",
                            "select lo_linenumber, count(distinct lo_orderkey) from lineorder group by 1"}) {
    const LoweredTree tree = Lowered(absl::StrCat("select * from (", query, ") g"));
    ASSERT_EQ(tree.lowered.stages.size(), 2u) << TextOf(tree);
    ASSERT_NE(GroupsOf(tree, 0), nullptr);
    EXPECT_GT(GroupsOf(tree, 0)->parts, 0u);
    EXPECT_TRUE(GroupsOf(tree, 0)->aggregates.empty());
  }
  // Of several each row comes once for each; what ignores repeats is asked of pairs, then of what they say.
  const LoweredTree several = Lowered(
      "select * from (select lo_linenumber, count(distinct lo_orderkey), sum(distinct lo_custkey), "
      "min(lo_orderkey), max(lo_revenue) from lineorder group by 1) g");
  ASSERT_EQ(several.lowered.stages.size(), 2u) << TextOf(several);
  ASSERT_NE(GroupsOf(several, 0), nullptr) << TextOf(several);
  EXPECT_GT(GroupsOf(several, 0)->parts, 0u) << TextOf(several);
  EXPECT_EQ(GroupsOf(several, 0)->group_by.size(), 3u) << TextOf(several);
  EXPECT_EQ(GroupsOf(several, 0)->aggregates.size(), 1u) << TextOf(several);
  // Sums beside them would count a value once for each.
  const LoweredTree mixed = Lowered(
      "select * from (select lo_linenumber, count(distinct lo_orderkey), sum(lo_revenue) from lineorder "
      "group by 1) g");
  EXPECT_EQ(GroupsOf(mixed, 0)->parts, 0u);
  const LoweredTree least =
      Lowered("select * from (select lo_linenumber, min(lo_orderkey) from lineorder group by 1) g");
  EXPECT_EQ(GroupsOf(least, 0)->parts, 0u) << "min looks at each value once anyway";
}

TEST(Stages, PartsProbeWhatServersScan) {
  const LoweredTree tree = Lowered(
      "select * from (select lo_custkey as k, lo_orderkey, sum(lo_revenue) from lineorder group by 1, 2) g "
      "join customer on k = c_custkey");
  ASSERT_EQ(tree.lowered.stages.size(), 2u) << TextOf(tree);
  EXPECT_TRUE(ClaimsParts(tree, 1)) << TextOf(tree);
  EXPECT_TRUE(tree.lowered.stages[1].extended);
}

TEST(Stages, TheSideOfAJoinThatHasMoreRowsThanExpectedIsProbed) {
  const std::string query =
      "select * from (select c_custkey from customer limit 20000) c, (select lo_custkey as k, lo_revenue "
      "from lineorder where lo_quantity = 1 and lo_discount = 1 and lo_linenumber = 2 and lo_tax = 3 and "
      "lo_suppkey = 7) l where k = c_custkey";
  const LoweredTree tree = Lowered(query);
  ASSERT_EQ(tree.lowered.stages.size(), 2u) << TextOf(tree);
  uint32_t number = 0;
  while (number < 2 && !tree.lowered.stages[number].barrier) ++number;
  ASSERT_LT(number, 2u) << TextOf(tree);
  const LoweredTree same = Lowered(query, {{number, {.rows = 10}}});
  EXPECT_EQ(Beginning(tree, 2), Beginning(same, 2));
  const auto build = [](const LoweredTree& lowered) {
    for (uint32_t p = 0; p < lowered.lowered.plan.pipelines.size(); ++p) {
      const plan::Pipeline& pipeline = lowered.lowered.plan.pipelines[p];
      if (std::holds_alternative<plan::BuildSink>(pipeline.sink)) return pipeline.after.at(0);
    }
    return uint32_t{99};
  };
  const LoweredTree more = Lowered(query, {{number, {.rows = 5e6}}});
  EXPECT_NE(build(more), build(tree)) << TextOf(more) << TextOf(tree);
}

LoweredTree Joined(const std::string& text, uint64_t build_bytes_max, const StageFacts& facts = {},
                   JoinAlgorithm join = JoinAlgorithm::kAuto) {
  Tables tables;
  absl::StatusOr<LoweredTree> lowered = LowerTree(
      Bound(text, tables),
      {.aggregate = AggregateAlgorithm::kAuto, .join = join, .build_bytes_max = build_bytes_max}, facts);
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

const plan::JoinSource* JoinOfStage(const LoweredTree& tree, uint32_t stage) {
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  return std::get_if<plan::JoinSource>(&plan.pipelines[plan.stages[stage].claimed].source);
}

constexpr uint64_t kMiB = 1 << 20;

TEST(Stages, BuildSidesThatDoNotFitComeByParts) {
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
  // Each is planned anew as it was.
  const LoweredTree again = Joined(query, 16 * kMiB, {{0, {.rows = 7e6, .by_parts = true}}});
  EXPECT_EQ(Beginning(tree, 1), Beginning(again, 1));
  EXPECT_EQ(TextOf(Joined(query, 16 * kMiB, {}, JoinAlgorithm::kPipelined)), TextOf(whole));
}

/// As few parts as there is work for, whatever the rows.
TEST(Stages, GraceHashJoinsHaveLargeParts) {
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
  absl::StatusOr<LoweredTree> lowered =
      LowerTree(Bound(text, tables), {.aggregate = plan::AggregateAlgorithm::kAuto, .join = join});
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

/// One stage: both sides are sent, received, built and probed, and what follows goes on.
TEST(Stages, JoinsByExchangeAreOneStreamedStage) {
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

/// Of the kinds that let no row of the probe side go without a partner; others send all rows.
TEST(Stages, BloomFiltersDropRowsBeforeTheyAreSent) {
  const auto filtered_by = [](const LoweredTree& tree) {
    std::vector<uint32_t> builds;
    for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines) {
      const auto* send = std::get_if<plan::ExchangeSend>(&pipeline.sink);
      if (send == nullptr || !send->filtered_by.has_value()) continue;
      builds.push_back(*send->filtered_by);
      EXPECT_EQ(pipeline.after, std::vector<uint32_t>{*send->filtered_by}) << TextOf(tree);
    }
    return builds;
  };
  const auto join = [](const std::string& kind) {
    return absl::StrCat("select * from (select a.lo_tax from lineorder a ", kind,
                        " join lineorder b on a.lo_orderkey = b.lo_orderkey) g");
  };
  const auto where = [](const std::string& exists) {
    return absl::StrCat("select * from (select a.lo_tax from lineorder a where ", exists,
                        " (select * from lineorder b where a.lo_orderkey = b.lo_orderkey)) g");
  };
  for (const auto& [query, drops] : std::vector<std::pair<std::string, bool>>{{join(""), true},
                                                                              {where("exists"), true},
                                                                              {join("left"), false},
                                                                              {join("full"), false},
                                                                              {where("not exists"), false}}) {
    const LoweredTree tree = Exchanged(query, JoinAlgorithm::kGhjBloom);
    EXPECT_TRUE(tree.lowered.stages[0].streamed) << TextOf(tree);
    ASSERT_EQ(filtered_by(tree).size(), drops ? 1u : 0u) << TextOf(tree);
    EXPECT_EQ(tree.lowered.joins[0].algorithm, drops ? JoinAlgorithm::kGhjBloom : JoinAlgorithm::kGhj);
    EXPECT_TRUE(filtered_by(Exchanged(query)).empty());
    if (!drops) continue;
    const uint32_t build = filtered_by(tree)[0];
    EXPECT_TRUE(std::holds_alternative<plan::BuildSink>(tree.lowered.plan.pipelines[build].sink));
  }
}

/// Those whose build side somebody asks a fact of, those without equal keys, and those of groups.
TEST(Stages, OtherJoinsDoNotGoByExchange) {
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
TEST(Stages, NullKeysAreNotSentWhereTheyMatchNothing) {
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

/// Conditions that nobody can estimate leave few rows of each side, and nearly none of the join.
TEST(Stages, RowsOfAJoinByPartsMayBeMoreThanExpected) {
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
  // What has come of a side says more.
  for (uint32_t side : {0, 1}) {
    const double expected = tree.lowered.stages[side].expected.rows;
    const LoweredTree more = Joined(query, kMiB / 4, {{side, {.rows = 50 * expected, .by_parts = true}}});
    EXPECT_NEAR(rows(more), 50 * rows(tree), 1) << TextOf(more);
  }
}

TEST(Stages, JoinsOfGroupsByPartsStayOnServers) {
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

/// Only what has keys.
TEST(Stages, CrossJoinsDoNotGoByParts) {
  const LoweredTree tree = Joined("select count(*) from customer left join supplier on c_custkey < s_suppkey",
                                  kMiB, {}, JoinAlgorithm::kRrj);
  for (uint32_t s = 0; s < tree.lowered.stages.size(); ++s)
    EXPECT_EQ(JoinOfStage(tree, s), nullptr) << TextOf(tree);
}

/// Their build side says beside its parts whether it has a NULL, and all of the probe side is there.
TEST(Stages, InAndNotInByTheKeyCountNullsOfTheirBuildSide) {
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
TEST(Stages, NullKeysAreLeftOutWhereTheyMatchNothing) {
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

/// Each of its consumers is a stage of its own that reads what the first one has left.
TEST(Stages, CommonTablesOfManyRowsGoToScratchMemory) {
  const auto query = [](const std::string& condition) {
    return absl::StrCat("with w as (select lo_orderkey k, lo_revenue s from lineorder ", condition,
                        ") select * from (select count(*) from w a join w b on a.k = b.k where a.s > b.s) g");
  };
  const LoweredTree tree = Joined(query(""), 4096 * kMiB);
  ASSERT_EQ(tree.lowered.stages.size(), 4u) << TextOf(tree);
  ASSERT_NE(JoinOfStage(tree, 3), nullptr) << TextOf(tree);
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  const uint32_t common = plan.stages[0].claimed;
  EXPECT_TRUE(tree.lowered.stages[0].barrier);
  EXPECT_EQ(std::get<plan::PartitionSink>(plan.pipelines[common].sink).keys.size(), 2u) << TextOf(tree);
  for (const uint32_t consumer : {1, 2}) {
    const auto* parts =
        std::get_if<plan::PartitionSource>(&plan.pipelines[plan.stages[consumer].claimed].source);
    ASSERT_NE(parts, nullptr) << TextOf(tree);
    EXPECT_EQ(parts->pipeline, common);
    EXPECT_EQ(tree.lowered.stages[consumer].parts,
              std::get<plan::PartitionSink>(plan.pipelines[common].sink).parts);
  }
  // Few rows are the session's, which joins them.
  EXPECT_EQ(Joined(query("where lo_orderkey < 100"), 4096 * kMiB).lowered.stages.size(), 1u);
  EXPECT_EQ(
      Joined(query("where lo_orderkey < 100"), 4096 * kMiB, {}, JoinAlgorithm::kRrj).lowered.stages.size(),
      4u);
  EXPECT_EQ(Joined(query(""), 4096 * kMiB, {}, JoinAlgorithm::kPipelined).lowered.stages.size(), 1u);
}

/// What is large beside the caches and the network is partitioned though it would fit, dimensions are not.
TEST(Stages, TheCheapestJoinIsChosenAndNoted) {
  const std::string query =
      "select count(*) from lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey join customer on "
      "a.lo_custkey = c_custkey";
  const LoweredTree tree = Joined(query, 4096 * kMiB);
  ASSERT_EQ(tree.lowered.joins.size(), 2u) << TextOf(tree);
  for (const JoinChoice& join : tree.lowered.joins) {
    EXPECT_EQ(join.why, Why::kCheapest);
    for (const double ms : join.costs) EXPECT_LE(CostOf(join.algorithm, join.costs), ms);
    const plan::Pipeline& build = tree.lowered.plan.pipelines[join.build];
    const bool by_parts = std::holds_alternative<plan::PartitionSink>(build.sink);
    EXPECT_EQ(join.algorithm == JoinAlgorithm::kPipelined, !by_parts) << TextOf(tree);
    EXPECT_TRUE(by_parts || std::holds_alternative<plan::BuildSink>(build.sink)) << TextOf(tree);
    EXPECT_TRUE(std::isinf(CostOf(JoinAlgorithm::kGhj, join.costs))) << "there is no exchange";
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
  EXPECT_EQ(large.lowered.joins.back().why, Why::kTooLarge) << TextOf(large);
}

TEST(Stages, ConstantsOfTheFabricDecide) {
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
  options.cluster.constants.write_64k_byte_ps = 1e5;  // 10 MB/s
  EXPECT_EQ(algorithm(), JoinAlgorithm::kPipelined);
  options.cluster.constants = {};
  options.cluster.constants.part_ps = 1e9;  // few parts pay
  options.cluster.constants.memory_access_ps = options.cluster.constants.l2_access_ps;
  EXPECT_NE(algorithm(), JoinAlgorithm::kRrj);
}

TEST(Stages, GroupsAreNotedWithWhatBothWaysCost) {
  const LoweredTree many = Lowered(kManyGroups);
  ASSERT_EQ(many.lowered.groups.size(), 1u) << TextOf(many);
  EXPECT_EQ(many.lowered.groups[0].algorithm, AggregateAlgorithm::kRdma);
  EXPECT_EQ(many.lowered.groups[0].why, Why::kCheapest);
  EXPECT_LT(many.lowered.groups[0].costs.rdma_ms, many.lowered.groups[0].costs.dist_ms);
  const LoweredTree few = Lowered("select lo_linenumber, sum(lo_revenue) from lineorder group by 1");
  ASSERT_EQ(few.lowered.groups.size(), 1u) << TextOf(few);
  EXPECT_EQ(few.lowered.groups[0].algorithm, AggregateAlgorithm::kDist);
  EXPECT_EQ(few.lowered.groups[0].why, Why::kFew);
  Tables tables;
  const auto forced = LowerTree(Bound(kManyGroups, tables), {.aggregate = AggregateAlgorithm::kDist});
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ(forced->lowered.groups.at(0).why, Why::kForced);
  EXPECT_EQ(forced->lowered.stages.size(), 1u);
}

/// The star schema's plans are pipelined on whatever there is, as they were before anything was estimated.
TEST(Stages, SsbsPlansDoNotDependOnTheCluster) {
  for (const ssb::Query& query : ssb::Queries()) {
    const std::string plain = TextOf(Lowered(std::string(query.sql)));
    for (const double servers : {1.0, 2.0, 4.0, 16.0, 64.0}) {
      for (const double threads : {1.0, 2.0, 16.0}) {
        for (const bool overlapped : {false, true}) {
          Tables tables;
          const auto tree =
              LowerTree(Bound(std::string(query.sql), tables),
                        {.aggregate = AggregateAlgorithm::kAuto,
                         .join = JoinAlgorithm::kAuto,
                         .build_bytes_max = 4096 * kMiB,
                         .cluster = {.servers = servers, .threads = threads, .overlapped = overlapped}});
          ASSERT_TRUE(tree.ok()) << tree.status();
          EXPECT_EQ(TextOf(*tree), plain) << query.id << " " << servers << " servers of " << threads;
        }
      }
    }
  }
}

TEST(Stages, SsbsQueriesNeedNoFurtherStage) {
  for (const ssb::Query& query : ssb::Queries()) {
    const LoweredTree tree = Lowered(std::string(query.sql));
    EXPECT_EQ(tree.lowered.stages.size(), 1u) << query.id << "\n" << TextOf(tree);
    EXPECT_EQ(TextOf(Joined(std::string(query.sql), 4096 * kMiB)), TextOf(tree)) << query.id;
  }
}

/// Whatever comes of stages, those that have run are the same in every plan that is made behind them.
TEST(Stages, PlansWithMoreFactsBeginAlike) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  size_t barriers = 0, parts = 0;
  for (const char* file : {"logical_results.txt", "logical_random_results.txt"}) {
    const sql::LogicalResults results = sql::LogicalResults::Read(absl::StrCat("tests/sql/", file));
    for (const sql::LogicalResults::Query& query : results.queries) {
      sql::ResultTables tables(results);
      absl::StatusOr<plan::logical::Query> tree = sql::BindLogical(query.text, tables);
      if (!tree.ok() || !Unnest(*tree).ok()) continue;
      PushFilters(*tree);
      const LoweringOptions options{
          .aggregate = AggregateAlgorithm::kRdma,
          .join = random() % 2 == 0 ? JoinAlgorithm::kRrj : JoinAlgorithm::kPipelined};
      StageFacts facts;
      absl::StatusOr<LoweredTree> before = LowerTree(*tree, options);
      for (uint32_t s = 0; before.ok() && s < before->lowered.stages.size(); ++s) {
        if (!before->lowered.stages[s].barrier) continue;
        ++barriers;
        facts[s] = {.rows = static_cast<double>(random() % 100'000),
                    .by_parts = before->lowered.stages[s].expected.by_parts && random() % 2 == 0};
        parts += facts[s].by_parts;
        absl::StatusOr<LoweredTree> after = LowerTree(*tree, options, facts);
        ASSERT_TRUE(after.ok()) << query.text << "\n" << after.status();
        ASSERT_EQ(Beginning(*before, s + 1), Beginning(*after, s + 1))
            << query.text << "\n"
            << TextOf(*before) << "behind stage " << s << "\n"
            << TextOf(*after);
        before = std::move(after);
      }
    }
  }
  EXPECT_GT(barriers, 100u);
  EXPECT_GT(parts, 50u);
}

/// The runs of what servers leave, and of the session's sorts.
struct RunsOfPlan {
  plan::Runs servers = plan::Runs::kNever, session = plan::Runs::kNever;
  int64_t limit = -1;  // of the session's sort
};
RunsOfPlan RunsOf(const std::string& text, const LoweringOptions& options) {
  Tables tables;
  const absl::StatusOr<LoweredTree> tree = LowerTree(Bound(text, tables), options);
  EXPECT_TRUE(tree.ok()) << text << "\n" << tree.status();
  RunsOfPlan out;
  if (!tree.ok()) return out;
  for (const plan::Pipeline& pipeline : tree->lowered.plan.pipelines) {
    if (const auto* result = std::get_if<plan::ResultSink>(&pipeline.sink);
        result != nullptr && result->runs != plan::Runs::kNever)
      out.servers = result->runs;
    if (const auto* sort = std::get_if<plan::SortSink>(&pipeline.sink); sort != nullptr) {
      if (sort->runs != plan::Runs::kNever) out.session = sort->runs;
      out.limit = sort->limit;
    }
  }
  return out;
}

TEST(Stages, ManyRowsAreSortedByServers) {
  using plan::Runs;
  const LoweringOptions if_many{.runs = Runs::kIfMany, .top_bytes_max = 1 << 20};
  const std::string all = "select lo_revenue, lo_orderkey + 1 from lineorder order by lo_revenue * 2 desc";
  EXPECT_EQ(RunsOf(all, if_many).servers, Runs::kIfMany);
  EXPECT_EQ(RunsOf(all, if_many).session, Runs::kIfMany);
  EXPECT_EQ(RunsOf(all, {.runs = Runs::kAlways}).servers, Runs::kAlways);
  EXPECT_EQ(RunsOf(all, {}).servers, Runs::kNever);
  EXPECT_EQ(RunsOf(all, {}).session, Runs::kNever);

  const std::string few = "select d_datekey from date order by d_datekey";
  EXPECT_EQ(RunsOf(few, if_many).servers, Runs::kNever) << "2,557 rows";
  EXPECT_EQ(RunsOf(few, if_many).session, Runs::kIfMany) << "nobody knows what joins make";
  EXPECT_EQ(RunsOf(few, {.runs = Runs::kAlways}).servers, Runs::kAlways);

  const std::string first = "select lo_revenue from lineorder order by lo_revenue limit ";
  EXPECT_EQ(RunsOf(first + "10", if_many).servers, Runs::kNever);
  EXPECT_EQ(RunsOf(first + "10", if_many).limit, 10);
  EXPECT_EQ(RunsOf(first + "1000000", if_many).servers, Runs::kIfMany) << "more than memory is there for";
  EXPECT_EQ(RunsOf(first + "1000000", if_many).limit, -1);
  EXPECT_EQ(RunsOf(first + "1000000", {}).limit, 1'000'000);

  const std::string window =
      "select lo_orderkey, sum(lo_revenue) over (partition by lo_custkey order by lo_orderdate) from "
      "lineorder";
  EXPECT_EQ(RunsOf(window, if_many).servers, Runs::kIfMany);
  EXPECT_EQ(RunsOf(window, if_many).session, Runs::kIfMany);
  EXPECT_EQ(RunsOf("select sum(lo_revenue) over () from lineorder", if_many).servers, Runs::kNever);
  EXPECT_EQ(
      RunsOf("select distinct on (lo_custkey) lo_orderkey from lineorder order by lo_custkey, 1", if_many)
          .servers,
      Runs::kIfMany);
}

}  // namespace
}  // namespace nam::optimizer
