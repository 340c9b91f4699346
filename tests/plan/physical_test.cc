#include "plan/physical.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "plan/check.h"
#include "plan/flow.h"
#include "plan/print.h"
#include "tests/plan/random_plan.h"

namespace nam::plan {
namespace {

using testing::Random;

const Bounds kCounts{0, std::numeric_limits<int64_t>::max(), true};
const Bounds kWords{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), true};

TEST(Flow, StatesFollowTheirAggregates) {
  const Schema keys = {{Type::String(), true, {}}};
  const Slot n{Type::Integer(), false, {1, 9, true}}, d{Type::Decimal(2), true, {}};
  const std::vector<Aggregate> aggregates = {{AggregateFunction::kCountRows, {}, Type::Integer()},
                                             {AggregateFunction::kSum, {}, Type::Decimal(2)},
                                             {AggregateFunction::kMin, {}, Type::Integer()},
                                             {AggregateFunction::kAverage, {}, Type::Numeric()},
                                             {AggregateFunction::kCountDistinct, {}, Type::Integer()}};
  const Schema states = StatesOf(keys, aggregates, Schema{{}, d, n, d, n});
  const Slot half{d.type, true, kWords}, word{d.type, false, kWords};
  const Schema wanted = {keys[0], {Type::Integer(), false, kCounts},     half,
                         word,    {Type::Integer(), true, {1, 9, true}}, half,
                         word,    {Type::Integer(), false, kCounts}};
  EXPECT_EQ(states, wanted);
}

/// f(a, b) left-joins d(k, x), then projects.
PhysicalPlan Example() {
  PhysicalPlan plan;
  plan.tables = {{"d", 1, false}, {"f", 2, false}};
  const Slot n{Type::Integer(), false, {0, 9, true}};
  for (uint32_t t = 0; t < 2; ++t) {
    Pipeline p;
    BlockScan scan;
    scan.table = t;
    scan.columns = {1, 4};
    scan.slots = {n, n};
    scan.output = {0, 1};
    p.source = scan;
    p.schemas = {{n, n}};
    p.estimates = {{10, 0.5}};
    plan.pipelines.push_back(p);
  }
  plan.pipelines[0].sink = BuildSink{{Random::Column({n, n}, 0)}, {1}, true};
  Pipeline& p = plan.pipelines[1];
  ProbeStep probe;
  probe.kind = JoinKind::kLeft;
  probe.keys = {Random::Column({n, n}, 1)};
  probe.keep = {1};
  probe.fetch = {0};
  p.steps.push_back(probe);
  p.schemas.push_back(*StepOutput(plan, p.steps[0], p.schemas[0]));
  const Expr x = Random::Column(p.schemas[1], 1), b = Random::Column(p.schemas[1], 0);
  p.steps.push_back(ProjectStep{{x, b, Random::Node(Op::kAdd, Type::Integer(), {x, b})}});
  p.schemas.push_back(*StepOutput(plan, p.steps[1], p.schemas[1]));
  p.estimates.resize(3, {7, 1});
  p.sink = ResultSink{{{2, true, true}, {0, false, true}}, 5};
  p.after = {0};
  plan.stages = {{1, {}}};
  return plan;
}

TEST(Flow, OuterJoinsMakeNulls) {
  const PhysicalPlan plan = Example();
  ASSERT_TRUE(Check(plan).ok()) << Check(plan);
  const Schema& joined = plan.pipelines[1].schemas[1];
  EXPECT_FALSE(joined[0].nullable);
  EXPECT_TRUE(joined[1].nullable);
  EXPECT_EQ(plan.pipelines[1].schemas[2][2], (Slot{Type::Integer(), true, {0, 18, true}}));
  ProbeStep probe = std::get<ProbeStep>(plan.pipelines[1].steps[0]);
  const auto output = [&](JoinKind kind) {
    probe.kind = kind;
    return *StepOutput(plan, probe, plan.pipelines[1].schemas[0]);
  };
  EXPECT_FALSE(output(JoinKind::kInner)[1].nullable);
  EXPECT_TRUE(output(JoinKind::kRight)[0].nullable);
  EXPECT_FALSE(output(JoinKind::kRight)[1].nullable);
  EXPECT_TRUE(output(JoinKind::kFull)[0].nullable && output(JoinKind::kFull)[1].nullable);
  EXPECT_EQ(output(JoinKind::kSemi).size(), 1u);
  EXPECT_EQ(output(JoinKind::kNullAwareAnti).size(), 1u);
  EXPECT_EQ(output(JoinKind::kMark)[1], (Slot{Type::Bool(), false, {}})) << "as of EXISTS";
  probe.null_aware = true;
  EXPECT_EQ(output(JoinKind::kMark)[1], (Slot{Type::Bool(), true, {}})) << "as of IN";
}

TEST(Flow, SlotsAreFollowedToTheirSource) {
  PhysicalPlan plan = Example();
  const Pipeline& p = plan.pipelines[1];
  EXPECT_EQ(SourceSlotOf(p, 0, 1), 1u);
  EXPECT_EQ(SourceSlotOf(p, 1, 0), 1u);
  EXPECT_EQ(SourceSlotOf(p, 1, 1), std::nullopt) << "from the build side";
  EXPECT_EQ(SourceSlotOf(p, 2, 0), std::nullopt);
  EXPECT_EQ(SourceSlotOf(p, 2, 1), 1u);
  EXPECT_EQ(SourceSlotOf(p, 2, 2), std::nullopt) << "computed";
  std::get<ProbeStep>(plan.pipelines[1].steps[0]).kind = JoinKind::kFull;
  EXPECT_EQ(SourceSlotOf(p, 1, 0), std::nullopt) << "a full join makes rows that the source has not";
}

TEST(Print, EachNodeIsALine) {
  const auto name = [](uint32_t table, uint32_t column) {
    return (table == 0 ? "d" : "f") + std::to_string(column);
  };
  const std::vector<std::string> golden = {
      "P0 scan d (d1, d4) => d1, d4 ~10",
      "   build unique on d1 payload d4",
      "P1 scan f (f1, f4) => f1, f4 ~10, claimed, after P0",
      "   probe left P0 on f4 => f4, d4 ~7",
      "   project d4, f4, d4 + f4 ~7",
      "   result first 5 by d4 + f4 desc, d4 nulls first",
  };
  EXPECT_EQ(Print(Example(), name), golden);
}

TEST(Print, SortsWindowsUnionsAndSetsAreLines) {
  PhysicalPlan plan;
  const Slot n{Type::Integer(), false, {0, 9, true}};
  Pipeline fed;
  fed.source = ValuesSource{{{Value::Integer(1), Value::Integer(2)}}};
  fed.schemas = {{n, n}};
  fed.estimates = {{1, 1}};
  Pipeline sorted = fed, window = fed, loop = fed;
  fed.sink = FeedSink{1};
  sorted.sink = SortSink{{{0, false, false}, {1, true, true}}};
  sorted.after = {0};
  plan.pipelines = {fed, sorted};
  WindowCall sum{WindowFunction::kAggregate, AggregateFunction::kSum, {1}, {}, Type::Integer()};
  sum.frame.start = {FrameBound::Kind::kPreceding, 3};
  sum.frame.exclusion = WindowFrame::Exclusion::kTies;
  const WindowCall rank{WindowFunction::kRank, {}, {}, {}, Type::Integer()};
  const WindowSource over{1, 1, 1, {sum, rank}};
  window.source = over;
  window.schemas = {*WindowOutput(plan, over)};
  window.steps = {
      ExpandStep{{0, 1}, {{0, 1}, {1}, {}}}, RepeatStep{3}, LimitStep{4, 1, {0, 2}},
      SeriesStep{Random::Column({n, n}, 0), Random::Column({n, n}, 1), Random::Column({n, n}, 0)}};
  for (const StepNode& step : window.steps)
    window.schemas.push_back(*StepOutput(plan, step, window.schemas.back()));
  window.estimates.resize(5, {1, 1});
  window.sink = BuildSink{{}, {0}, false};
  window.after = {1};
  plan.pipelines.push_back(window);
  ProbeStep probe;
  probe.build = 2;
  probe.kind = JoinKind::kMark;
  probe.keep = {1};
  probe.fetch = {0};
  const Schema partners = *PartnerSchema(plan, probe, {n, n});
  probe.compared = {
      Random::Node(Op::kEqual, Type::Bool(), {Random::Column(partners, 0), Random::Column(partners, 1)})};
  loop.steps = {probe};
  loop.schemas.push_back(*StepOutput(plan, loop.steps[0], loop.schemas[0]));
  loop.estimates.resize(2, {1, 1});
  loop.sink = SortSink{{}, 5, 2};
  loop.after = {2};
  plan.pipelines.push_back(loop);
  std::get<SortSink>(plan.pipelines[1].sink).runs = Runs::kIfMany;
  plan.stages = {{3, {}, Stage::Site::kSession}};
  ASSERT_TRUE(Check(plan).ok()) << Check(plan);
  const std::vector<std::string> golden = {
      "P0 values, 1 row => column1, column2 ~1, session",
      "   feed P1",
      "P1 values, 1 row => column1, column2 ~1, session, after P0",
      "   sort by column1, column2 desc, as sorted runs if they are many",
      "P2 window over rows of P1 partition by column1 order by column2 desc, sum(column2) range between 3 "
      "preceding and current row exclude ties, rank() => column1, column2, sum(column2), rank() ~1, session, "
      "after P1",
      "   expand to sets (column1, column2), (column2), () => column1, column2, sum(column2), rank(), "
      "column1, "
      "column2, set() ~1",
      "   repeat rank() times => column1, column2, sum(column2), rank(), column1, column2, set() ~1",
      "   limit 4 behind 1 with ties in column1, sum(column2) => column1, column2, sum(column2), rank(), "
      "column1, column2, set() ~1",
      "   series from column1 to column2 by column1 => column1, column2, sum(column2), rank(), column1, "
      "column2, set(), series() ~1",
      "   build rows payload column1",
      "P3 values, 1 row => column1, column2 ~1, session, after P2",
      "   probe mark P2 in a loop comparing column2 = column1 => column2, mark(P2) ~1",
      "   sort first 5 after 2",
  };
  EXPECT_EQ(Print(plan, [](uint32_t, uint32_t) { return "c"; }), golden);
}

TEST(Print, EveryPlanHasText) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const PhysicalPlan plan = testing::RandomPlan(seed).Make();
    ASSERT_TRUE(Check(plan).ok()) << Check(plan);
    size_t nodes = 0;
    for (const Pipeline& p : plan.pipelines) nodes += p.steps.size() + 2;
    EXPECT_EQ(Print(plan, [](uint32_t, uint32_t) { return "c"; }).size(), nodes);
  }
}

}  // namespace
}  // namespace nam::plan
