#include <gtest/gtest.h>

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "optimizer/lower_tree.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "ssb/queries.h"
#include "tests/optimizer/staged_plans.h"
#include "tests/sql/logical_results.h"

/// Plans of several stages of servers, made anew with the results of those that have run.
namespace nam::optimizer {
namespace {

using plan::AggregateAlgorithm;
using plan::JoinAlgorithm;

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
  // For several aggregates each row comes once for each; aggregates that ignore repeats are computed over
  // pairs, then over the values of those.
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
  EXPECT_EQ(StageTablesOf(tree.lowered.plan, tree.lowered.tables, 1).builds.size(), 1u);
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

/// The maximum possible rows decide. If that plan is dearer than the one for the expected rows, it is not
/// called the cheapest.
TEST(Stages, GroupsThatAreTheCheaperOnesOfMostAloneAreSaidToBe) {
  int of_most = 0;
  for (const char* from :
       {"lineorder a", "lineorder a join lineorder b on a.lo_orderkey = b.lo_orderkey and b.lo_tax = 1"}) {
    for (const char* where :
         {"", " where a.lo_quantity = 1", " where a.lo_quantity = 1 and a.lo_discount = 1",
          " where a.lo_quantity = 1 and a.lo_discount = 1 and a.lo_tax = 1"}) {
      for (const char* keys : {"a.lo_orderkey, a.lo_linenumber", "a.lo_custkey"}) {
        const std::string query =
            absl::StrCat("select ", keys, ", sum(a.lo_revenue) from ", from, where, " group by ", keys);
        const LoweredTree tree = Joined(query, 4096 * kMiB, {}, JoinAlgorithm::kRrj);
        ASSERT_EQ(tree.lowered.groups.size(), 1u) << query << TextOf(tree);
        const GroupChoice& groups = tree.lowered.groups[0];
        const bool rdma = groups.algorithm == AggregateAlgorithm::kRdma;
        const bool cheapest = rdma == (groups.costs.rdma_ms <= groups.costs.dist_ms);
        EXPECT_TRUE(groups.why != Why::kCheapest || cheapest) << query;
        EXPECT_TRUE(groups.why != Why::kCheapestOfMost || !cheapest) << query;
        of_most += groups.why == Why::kCheapestOfMost;
      }
    }
  }
  EXPECT_GT(of_most, 0);
}

/// The star schema's plans are pipelined on any hardware, as they were before there were estimates.
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

/// Whatever the results of stages are, those that have run are the same in every plan made after them.
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

/// The runs that servers leave, and those of the session's sorts.
struct RunsOfPlan {
  plan::Runs servers = plan::Runs::kNever, session = plan::Runs::kNever;
  int64_t limit = -1;  // that of the session's sort
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
  EXPECT_EQ(RunsOf(few, if_many).session, Runs::kIfMany) << "it is not known what joins make";
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
