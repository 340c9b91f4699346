#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "plan/check.h"
#include "tests/plan/random_expression.h"
#include "tests/plan/star_plan.h"

/// What one stage leaves for another: states of groups, parts, exchanges, and filters of build sides.
namespace nam::plan {
namespace {

using testing::GroupsIn;
using testing::kInt;
using testing::Random;
using testing::Scan;
using testing::Star;

/// Adds a stage of its own over the star's groups.
PhysicalPlan WithMerge() {
  PhysicalPlan plan = Star();
  Pipeline merge;
  merge.source = PageSource{1};
  merge.schemas = {*SinkOutput(plan.pipelines[1])};
  merge.estimates = {{}};
  AggregateSink sink = GroupsIn(plan);
  sink.phase = AggregateSink::Phase::kFinal;
  sink.group_by = {Random::Column(merge.schemas[0], 0)};
  sink.aggregates[0].argument = Expr();
  sink.aggregates[0].argument.type = Type::Decimal(2);
  merge.sink = std::move(sink);
  merge.after = {1};
  merge.stage = 1;
  plan.pipelines.push_back(std::move(merge));
  plan.stages.push_back({2, {}});
  return plan;
}

TEST(CheckStages, StatesAreMergedAsTheyWereMade) {
  ASSERT_TRUE(Check(WithMerge()).ok()) << Check(WithMerge());
  const auto refused = [](const std::function<void(AggregateSink&)>& change) {
    PhysicalPlan plan = WithMerge();
    change(std::get<AggregateSink>(plan.pipelines[2].sink));
    return !Check(plan).ok();
  };
  EXPECT_TRUE(refused([](AggregateSink& s) { s.group_by.clear(); }));
  EXPECT_TRUE(refused([](AggregateSink& s) { s.aggregates.pop_back(); }));
  EXPECT_TRUE(refused([](AggregateSink& s) { std::swap(s.aggregates[0], s.aggregates[1]); }));
  EXPECT_TRUE(refused(
      [](AggregateSink& s) { s.aggregates[0].argument.type = s.aggregates[0].type = Type::Integer(); }));
  PhysicalPlan plan = WithMerge();
  plan.pipelines[2].after.clear();
  EXPECT_FALSE(Check(plan).ok()) << "pages of what is not complete";
}

/// Like WithMerge, by parts of the groups that servers claim.
PhysicalPlan WithParts() {
  PhysicalPlan plan = WithMerge();
  GroupsIn(plan).parts = 16;
  Pipeline& merge = plan.pipelines[2];
  PartitionSource source{1, std::get<AggregateSink>(merge.sink)};
  merge.schemas = {*PartitionOutput(plan, source)};
  merge.source = std::move(source);
  merge.sink = ResultSink{};
  return plan;
}

TEST(CheckStages, PartsAreReadAsTheyWereLeft) {
  ASSERT_TRUE(Check(WithParts()).ok()) << Check(WithParts());
  const auto refused = [](const std::function<void(PhysicalPlan&, PartitionSource&)>& change) {
    PhysicalPlan plan = WithParts();
    change(plan, std::get<PartitionSource>(plan.pipelines[2].source));
    return !Check(plan).ok();
  };
  using Plan = PhysicalPlan;
  using Parts = PartitionSource;
  EXPECT_FALSE(refused([](Plan&, Parts&) {}));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { GroupsIn(p).parts = 0; })) << "parts that there are not";
  EXPECT_TRUE(refused([](Plan& p, Parts&) { GroupsIn(p).parts = UINT32_MAX; }));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { GroupsIn(p).phase = AggregateSink::Phase::kWhole; }));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { p.pipelines[2].after.clear(); }));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { p.stages[1].site = Stage::Site::kSession; }));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { p.pipelines[2].stage = 0, p.stages.pop_back(); }));
  EXPECT_TRUE(refused([](Plan&, Parts& s) { s.pipeline = 0; })) << "parts of a build side";
  EXPECT_TRUE(refused([](Plan&, Parts& s) { s.pipeline = 7; }));
  EXPECT_TRUE(refused([](Plan& p, Parts& s) {
    s.merge.reset();
    p.pipelines[2].schemas = {*SinkOutput(p.pipelines[1])};
  })) << "states as rows";
  EXPECT_TRUE(refused([](Plan&, Parts& s) { s.merge->phase = AggregateSink::Phase::kMerge; }));
  EXPECT_TRUE(refused([](Plan&, Parts& s) { s.merge->aggregates.pop_back(); }));
  EXPECT_TRUE(refused([](Plan& p, Parts&) { p.pipelines[2].schemas[0].pop_back(); }));
  PhysicalPlan rows = WithParts();
  rows.pipelines[1].sink = PartitionSink{{0}, 4};
  rows.pipelines[2].source = Parts{1, {}};
  rows.pipelines[2].schemas = {rows.pipelines[1].schemas.back()};
  EXPECT_TRUE(Check(rows).ok()) << Check(rows);
  std::get<PartitionSink>(rows.pipelines[1].sink).counts_nulls = true;
  EXPECT_FALSE(Check(rows).ok()) << "some of them are not there";
  std::get<PartitionSink>(rows.pipelines[1].sink).counts_nulls = false;
  rows.pipelines[2].source = PageSource{1};
  EXPECT_FALSE(Check(rows).ok()) << "parts as pages of a result";
}

/// Two scans by parts, joined by them.
PhysicalPlan WithJoin() {
  PhysicalPlan plan;
  plan.tables = {{"f", 4, false}, {"d", 5, false}};
  for (uint32_t t = 0; t < 2; ++t) {
    Pipeline side = Scan(t, {kInt, {Type::String(), true, {}}});
    side.sink = PartitionSink{{0}, 16};
    side.stage = t;
    plan.pipelines.push_back(std::move(side));
    plan.stages.push_back({t, {}});
  }
  JoinSource source{
      .probed = 0, .build = {.payload = {1}}, .probe = {.build = 1, .keep = {0, 1}, .fetch = {0}}};
  source.build.keys = source.probe.keys = {Random::Column(plan.pipelines[0].schemas[0], 0)};
  Pipeline join;
  join.schemas = {SchemasOf(plan, source)->output};
  join.source = std::move(source);
  join.estimates = {{}};
  join.sink = ResultSink{};
  join.after = {0, 1};
  join.stage = 2;
  plan.pipelines.push_back(std::move(join));
  plan.stages.push_back({2, {}});
  return plan;
}

TEST(CheckStages, JoinsByPartsAreOfPartsOfTheirKeys) {
  ASSERT_TRUE(Check(WithJoin()).ok()) << Check(WithJoin());
  const auto refused = [](const std::function<void(PhysicalPlan&, JoinSource&)>& change) {
    PhysicalPlan plan = WithJoin();
    auto& join = std::get<JoinSource>(plan.pipelines[2].source);
    change(plan, join);
    // Check does not refuse the schema alone.
    if (const auto schemas = SchemasOf(plan, join); schemas.ok())
      plan.pipelines[2].schemas[0] = schemas->output;
    return absl::IsInvalidArgument(Check(plan));
  };
  using Plan = PhysicalPlan;
  using Join = JoinSource;
  EXPECT_FALSE(refused([](Plan&, Join&) {}));
  EXPECT_FALSE(refused([](Plan&, Join& j) { j.probe.kind = JoinKind::kFull; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.probed = 7; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.probe.build = 7; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.probe.build = 0; })) << "a join of rows with themselves";
  EXPECT_TRUE(refused([](Plan& p, Join&) { p.pipelines[2].after = {1}; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { p.pipelines[2].after = {0}; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { p.stages[2].site = Stage::Site::kSession; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { std::get<PartitionSink>(p.pipelines[1].sink).parts = 17; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { std::get<PartitionSink>(p.pipelines[1].sink).keys = {1}; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { std::get<PartitionSink>(p.pipelines[0].sink).keys = {0, 1}; }));
  EXPECT_TRUE(refused([](Plan& p, Join&) { p.pipelines[1].sink = ResultSink{}; }));
  EXPECT_TRUE(refused([](Plan& p, Join& j) {
    std::get<PartitionSink>(p.pipelines[1].sink).keys = {1};
    j.build.keys = {Random::Column(p.pipelines[1].schemas[0], 1)};
  })) << "numbers beside texts";
  EXPECT_TRUE(refused([](Plan& p, Join& j) {
    for (const uint32_t side : {0, 1}) std::get<PartitionSink>(p.pipelines[side].sink).keys.clear();
    j.build.keys.clear();
    j.probe.keys.clear();
  })) << "no keys";
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.build.payload = {2}; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.probe.fetch = {1}; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.probe.keep = {0, 2}; }));
  EXPECT_TRUE(refused([](Plan&, Join& j) { j.build.unique = true; }));
  // The keys have a domain: 0 … 99.
  const auto in_domain = [](Plan& p, const KeyDomain& probed, const KeyDomain& built, uint32_t parts = 16) {
    const KeyDomain domains[] = {probed, built};
    for (const size_t side : {0, 1}) {
      std::get<PartitionSink>(p.pipelines[side].sink).domain = domains[side];
      std::get<PartitionSink>(p.pipelines[side].sink).parts = parts;
    }
  };
  EXPECT_FALSE(refused([&](Plan& p, Join&) { in_domain(p, {0, 7}, {0, 7}); }));
  EXPECT_FALSE(refused([&](Plan& p, Join&) { in_domain(p, {-28, 7}, {-28, 7}); }));
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {0, 8}, {0, 7}); })) << "parts by other domains";
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {}, {0, 7}); })) << "parts of hashes beside those";
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {1, 7}, {1, 7}); })) << "a key below the domain";
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {-29, 7}, {-29, 7}); })) << "one behind it";
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {0, 7}, {0, 7}, 12); })) << "parts of no bits";
  EXPECT_TRUE(refused([&](Plan& p, Join&) { in_domain(p, {0, 7}, {0, 7}, 256); })) << "more than its keys";
  // IN and NOT IN by the key: a sink has counted the NULLs of the build side, and of that one alone.
  const auto counts = [](Plan& p, size_t side) {
    std::get<PartitionSink>(p.pipelines[side].sink).counts_nulls = true;
  };
  for (const bool mark : {false, true}) {
    const auto by_key = [&](Join& j) {
      j.probe.kind = mark ? JoinKind::kMark : JoinKind::kNullAwareAnti;
      j.probe.null_aware = mark;
    };
    EXPECT_FALSE(refused([&](Plan& p, Join& j) { by_key(j), counts(p, 1); }));
    EXPECT_TRUE(refused([&](Plan&, Join& j) { by_key(j); })) << "no sink has counted";
    EXPECT_TRUE(refused([&](Plan& p, Join& j) { by_key(j), counts(p, 1), counts(p, 0); }));
  }
  EXPECT_TRUE(refused([&](Plan& p, Join&) { counts(p, 0); }));
  EXPECT_TRUE(refused([&](Plan& p, Join&) { counts(p, 1); })) << "rows without a partner may be asked for";
  EXPECT_TRUE(refused([&](Plan& p, Join& j) { j.probe.kind = JoinKind::kMark, counts(p, 1); }));
  EXPECT_TRUE(refused([](Plan& p, Join& j) {
    j.probe.residuals = {Random::Column(p.pipelines[0].schemas[0], 0)};
  })) << "a condition that is a number";
  PhysicalPlan plan = WithJoin();
  plan.pipelines[2].schemas[0].pop_back();
  EXPECT_FALSE(Check(plan).ok());
}

TEST(CheckStages, PartsThatNobodyClaimsAreBuilt) {
  PhysicalPlan plan = WithJoin();
  Pipeline build;
  build.source = PartitionSource{1, {}};
  build.schemas = {plan.pipelines[1].schemas[0]};
  build.estimates = {{}};
  build.sink = BuildSink{.payload = {0, 1}};
  build.after = {1};
  build.stage = 2;
  Pipeline probing;
  probing.source = PartitionSource{0, {}};
  probing.schemas = {plan.pipelines[0].schemas[0]};
  probing.estimates = {{}};
  probing.sink = ResultSink{};
  probing.after = {0, 2};
  probing.stage = 2;
  plan.pipelines[2] = build;
  plan.pipelines.push_back(probing);
  plan.stages[2].claimed = 3;
  EXPECT_TRUE(Check(plan).ok()) << Check(plan);
  plan.pipelines[2].sink = SortSink{};
  EXPECT_FALSE(Check(plan).ok()) << "parts that all servers read, and whose rows flow on";
  plan.pipelines[2] = build;
  plan.stages[2].claimed = 2;
  EXPECT_FALSE(Check(plan).ok()) << "parts that flow on and are not claimed";
}

PhysicalPlan WithExchange() {
  PhysicalPlan plan = Star();
  plan.pipelines[1].sink = ExchangeSend{3, {0}};
  Pipeline receive;
  receive.source = ExchangeReceive{3};
  receive.schemas = {plan.pipelines[1].schemas.back()};
  receive.estimates = {{}};
  receive.sink = ResultSink{};
  plan.pipelines.push_back(std::move(receive));
  plan.stages[0].claimed = 2;
  return plan;
}

TEST(CheckStages, ExchangesHaveBothEndsAtOnce) {
  ASSERT_TRUE(Check(WithExchange()).ok()) << Check(WithExchange());
  const auto refused = [](const std::function<void(PhysicalPlan&)>& change) {
    PhysicalPlan plan = WithExchange();
    change(plan);
    return !Check(plan).ok();
  };
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines.pop_back(); })) << "no receiver";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines[2].source = ExchangeReceive{4}; }));
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines[2].after = {1}; })) << "it waits for its sender";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines.push_back(p.pipelines[2]); })) << "two receivers";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines[2].schemas[0][0].nullable = true; }));
}

/// P1 sends, P2 receives and builds, P3 sends what the filters of P2 leave, P4 receives and probes P2.
PhysicalPlan WithFilters() {
  PhysicalPlan plan = WithExchange();
  const Pipeline scan = plan.pipelines[1], receive = plan.pipelines[2];
  const std::vector<Expr> keys = {SlotExpr(receive.schemas[0], 0)};
  plan.pipelines[2].sink = BuildSink{.keys = keys};
  Pipeline& send = plan.pipelines.emplace_back(scan);
  send.sink = ExchangeSend{4, {0}, 2};
  send.after.push_back(2);
  Pipeline& probe = plan.pipelines.emplace_back(receive);
  probe.source = ExchangeReceive{4};
  probe.steps = {ProbeStep{.build = 2, .kind = JoinKind::kSemi, .keys = keys, .keep = {0}}};
  probe.schemas.push_back({probe.schemas[0][0]});
  probe.estimates.emplace_back();
  probe.after = {2};
  plan.stages[0].claimed = 4;
  return plan;
}

TEST(CheckStages, FiltersAreOfBuildSidesThatAreCompleteAndDropNothingThatIsWanted) {
  ASSERT_TRUE(Check(WithFilters()).ok()) << Check(WithFilters());
  const auto refused = [](const std::function<void(PhysicalPlan&)>& change) {
    PhysicalPlan plan = WithFilters();
    change(plan);
    return !Check(plan).ok();
  };
  const auto probe = [](PhysicalPlan& p) -> ProbeStep& {
    return std::get<ProbeStep>(p.pipelines[4].steps[0]);
  };
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.pipelines[3].after.pop_back(); })) << "it may not be complete";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { std::get<ExchangeSend>(p.pipelines[3].sink).filtered_by = 9; }));
  EXPECT_TRUE(refused([](PhysicalPlan& p) { std::get<ExchangeSend>(p.pipelines[3].sink).filtered_by = 0; }));
  EXPECT_TRUE(refused([&](PhysicalPlan& p) { probe(p).kind = JoinKind::kAnti; })) << "it wants those";
  EXPECT_TRUE(refused([&](PhysicalPlan& p) {
    std::get<BuildSink>(p.pipelines[2].sink).keys.clear();
    probe(p).keys.clear();
  })) << "it drops none";
}

/// P0 sends, P1 receives and sends on, P2 receives.
PhysicalPlan WithTwoExchanges() {
  PhysicalPlan plan = WithExchange();
  plan.pipelines[2].sink = ExchangeSend{4, {0}};
  Pipeline receive = plan.pipelines[2];
  receive.source = ExchangeReceive{4};
  receive.sink = ResultSink{};
  plan.pipelines.push_back(std::move(receive));
  plan.stages[0].claimed = 3;
  return plan;
}

TEST(CheckStages, ExchangesRunWithTheirReceivers) {
  ASSERT_TRUE(Check(WithTwoExchanges()).ok()) << Check(WithTwoExchanges());
  const auto refused = [](const std::function<void(PhysicalPlan&)>& change) {
    PhysicalPlan plan = WithTwoExchanges();
    change(plan);
    return !Check(plan).ok();
  };
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.stages[0].claimed = 1; })) << "what is sent is no result";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.stages[0].site = Stage::Site::kSession; }));
  const auto insert = [](PhysicalPlan& p, SinkNode sink) {
    Pipeline scan = p.pipelines[1];
    scan.sink = std::move(sink);
    p.pipelines.push_back(std::move(scan));
    return static_cast<uint32_t>(p.pipelines.size() - 1);
  };
  // A receiver that does not send, while rows are under way to a later one.
  EXPECT_TRUE(refused([&](PhysicalPlan& p) {
    Pipeline last = std::move(p.pipelines[3]);
    p.pipelines.pop_back();
    insert(p, ExchangeSend{5, {0}});
    Pipeline other = last;
    other.source = ExchangeReceive{5};
    p.pipelines.push_back(std::move(other));
    p.pipelines.push_back(std::move(last));
    p.stages[0].claimed = 5;
  }));
}

}  // namespace
}  // namespace nam::plan
