#include "plan/check.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "tests/plan/random_expression.h"
#include "tests/plan/star_plan.h"
#include "types/interval.h"

namespace nam::plan {
namespace {

using testing::GroupsIn;
using testing::kInt;
using testing::ProbeIn;
using testing::Random;
using testing::Refused;
using testing::Scan;
using testing::ScanIn;
using testing::Star;

TEST(Check, AcceptsAStar) {
  EXPECT_TRUE(Check(Star()).ok()) << Check(Star());
}

TEST(Check, IndexesNameSomething) {
  using P = PhysicalPlan;
  EXPECT_TRUE(Refused([](P& p) { p.pipelines.clear(); }));
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 0).table = 2; }));
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 0).output = {0, 2}; }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).build = 7; }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).keep = {2}; }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).fetch = {1}; })) << "of a payload of one column";
  EXPECT_TRUE(Refused([](P& p) { std::get<BuildSink>(p.pipelines[0].sink).payload = {2}; }));
  EXPECT_TRUE(Refused([](P& p) { GroupsIn(p).group_by[0].column.column = 2; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].sink = ResultSink{{{2, false, false}}, -1}; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].sink = PartitionSink{{2}, 4}; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].sink = PartitionSink{{0}, 0}; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[0].stage = 1; }));
  EXPECT_TRUE(Refused([](P& p) { p.stages[0].claimed = 2; }));
  EXPECT_TRUE(Refused([](P& p) { p.stages.clear(); }));
  EXPECT_TRUE(Refused([](P& p) { p.stages[0].result.columns = {0}; }));
}

TEST(Check, PipelinesComeAfterWhatTheyNeed) {
  using P = PhysicalPlan;
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].after.clear(); })) << "a probe of what may not be complete";
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[0].after = {0}; })) << "it waits for itself";
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[0].after = {1}; }));
  EXPECT_TRUE(Refused([](P& p) { std::swap(p.pipelines[0], p.pipelines[1]); }));
  EXPECT_TRUE(Refused([](P& p) {
    p.stages.push_back({1, {}});
    p.stages[0].claimed = 0;
    p.pipelines[1].stage = 1;
  })) << "a build is in its own stage's memory";
}

TEST(Check, SchemasAreWhatFlows) {
  using P = PhysicalPlan;
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].schemas.pop_back(); }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].estimates.pop_back(); }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].schemas[1][0].bounds.high = 499; }))
      << "narrower than what flows";
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].schemas[1][1].nullable = false; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].schemas[0][0].type = Type::Date(); }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).kind = JoinKind::kRight; })) << "it makes the kept slots NULL";
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 1).slots[0].bounds = {5, 4, true}; }));
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 0).slots.pop_back(); }));
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 0).columns = {1, 1}; }));
  EXPECT_TRUE(Refused([](P& p) { p.pipelines[1].estimates[0].rows = -1; }));
}

TEST(Check, ConditionsAndKeysAreTyped) {
  using P = PhysicalPlan;
  EXPECT_TRUE(Refused([](P& p) { ScanIn(p, 0).filters = {Random::Column({kInt}, 0)}; }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).residuals = {Random::Column(p.pipelines[1].schemas[1], 0)}; }));
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).keys = {Random::Column(p.pipelines[1].schemas[0], 1)}; }))
      << "a decimal of another scale than the build's integer";
  EXPECT_TRUE(Refused([](P& p) { ProbeIn(p).keys.clear(); }));
  EXPECT_TRUE(Refused([](P& p) { std::get<BuildSink>(p.pipelines[0].sink).keys.clear(); }));
  EXPECT_TRUE(Refused([](P& p) {
    ProbeIn(p).keys.clear();
    std::get<BuildSink>(p.pipelines[0].sink).keys.clear();
  })) << "rows without keys are not unique";
  EXPECT_FALSE(Refused([](P& p) {
    ProbeIn(p).keys.clear();
    std::get<BuildSink>(p.pipelines[0].sink) = BuildSink{{}, {1}, false};
  })) << "every row meets every row";
  EXPECT_TRUE(Refused([](P& p) { GroupsIn(p).aggregates[0].type = Type::Decimal(3); }));
  EXPECT_TRUE(Refused([](P& p) { GroupsIn(p).aggregates[0].function = AggregateFunction::kAverage; }));
  EXPECT_TRUE(Refused([](P& p) { GroupsIn(p).aggregates[1].type = Type::Bool(); }));
  EXPECT_TRUE(Refused([](P& p) {
    GroupsIn(p).aggregates[0].argument = Random::Column(p.pipelines[1].schemas[1], 1);
    GroupsIn(p).aggregates[0].type = Type::String();
  })) << "a sum of text";
  EXPECT_TRUE(Refused([](P& p) {
    GroupsIn(p).group_by = {MakeLiteral(Value::Span({1, 0, 0}), -1)};
  })) << "1 month is 30 days";
}

TEST(Check, ValuesAreThoseOfTheirSlots) {
  const auto refused = [](Schema slots, Value value) {
    PhysicalPlan plan;
    Pipeline p;
    p.source = ValuesSource{{{std::move(value)}}};
    p.schemas = {std::move(slots)};
    p.estimates = {{}};
    p.sink = ResultSink{};
    plan.pipelines.push_back(std::move(p));
    plan.stages = {{}};
    return !Check(plan).ok();
  };
  EXPECT_FALSE(refused({kInt}, Value::Integer(99)));
  EXPECT_TRUE(refused({kInt}, Value::Integer(100)));
  EXPECT_TRUE(refused({kInt}, Value::Null(Type::Integer())));
  EXPECT_TRUE(refused({kInt}, Value::String("7")));
  EXPECT_TRUE(refused({kInt, kInt}, Value::Integer(1)));
}

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

TEST(Check, StatesAreMergedAsTheyWereMade) {
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

TEST(Check, PartsAreReadAsTheyWereLeft) {
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

TEST(Check, JoinsByPartsAreOfPartsOfTheirKeys) {
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

TEST(Check, PartsThatNobodyClaimsAreBuilt) {
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

TEST(Check, SeriesAreOfNumbersAndTiesOfSlots) {
  const Schema input = {{Type::Integer(), true, {0, 9, true}},
                        {Type::Timestamp(), false, {}},
                        {Type::Interval(), false, {}},
                        {Type::Decimal(2), false, {}},
                        {Type::String(), true, {}}};
  PhysicalPlan plan;
  plan.stages = {{0, {}, Stage::Site::kSession}};
  const auto made = [&](const StepNode& step) {
    Pipeline p;
    p.source = ValuesSource{};
    p.steps = {step};
    p.schemas = {input};
    const absl::StatusOr<Schema> output = StepOutput(plan, step, input);
    p.schemas.push_back(output.ok() ? *output : input);
    p.estimates.resize(2);
    p.sink = ResultSink{};
    PhysicalPlan whole = plan;
    whole.pipelines = {p};
    return whole;
  };
  const auto refused = [&](const StepNode& step) { return absl::IsInvalidArgument(Check(made(step))); };
  const auto slot = [&](uint32_t s) { return SlotExpr(input, s); };
  EXPECT_FALSE(refused(SeriesStep{slot(0), slot(0), slot(0)}));
  EXPECT_FALSE(refused(SeriesStep{slot(3), slot(3), slot(3)}));
  EXPECT_FALSE(refused(SeriesStep{slot(1), slot(1), slot(2)}));
  EXPECT_TRUE(refused(SeriesStep{slot(1), slot(1), slot(1)})) << "a timestamp is no distance";
  EXPECT_TRUE(refused(SeriesStep{slot(0), slot(3), slot(0)})) << "numbers of two scales";
  EXPECT_TRUE(refused(SeriesStep{slot(4), slot(4), slot(4)}));
  EXPECT_TRUE(refused(SeriesStep{slot(0), slot(0), slot(2)}));
  const Schema with = *StepOutput(plan, SeriesStep{slot(0), slot(0), slot(0)}, input);
  EXPECT_FALSE(with.back().nullable);
  EXPECT_EQ(with.back().bounds, (Bounds{0, 9, true})) << "numbers lie between the ends";

  EXPECT_FALSE(refused(LimitStep{3, 0, {0, 4}}));
  EXPECT_TRUE(refused(LimitStep{3, 0, {5}})) << "a slot that is not there";
  EXPECT_TRUE(refused(LimitStep{3, 0, {2}})) << "intervals are no keys";
  EXPECT_TRUE(refused(LimitStep{-1, 0, {0}})) << "there is no last one of all";
}

/// Sorts f's rows, and looks at them by windows.
PhysicalPlan WithWindow() {
  PhysicalPlan plan;
  plan.tables = {{"f", 4, false}};
  Pipeline sorted = Scan(0, {kInt, {Type::String(), true, {}}, {Type::Date(), true, {}}});
  sorted.sink = SortSink{{{0, false, false}, {2, true, true}, {1, false, false}}};
  plan.pipelines.push_back(std::move(sorted));
  WindowCall sum{WindowFunction::kAggregate, AggregateFunction::kSum, {0}, {}, Type::Integer()};
  sum.frame.start = {FrameBound::Kind::kPreceding, 30};
  const WindowCall lag{WindowFunction::kLag, {}, {1, 0, 1}, {}, Type::String()};
  Pipeline window;
  window.source = WindowSource{0, 1, 1, {sum, lag}};
  window.schemas = {*WindowOutput(plan, std::get<WindowSource>(window.source))};
  window.estimates = {{}};
  window.sink = ResultSink{};
  window.after = {0};
  plan.pipelines.push_back(std::move(window));
  plan.stages = {{1, {}}};
  return plan;
}

TEST(Check, WindowsAreTyped) {
  ASSERT_TRUE(Check(WithWindow()).ok()) << Check(WithWindow());
  const auto refused = [](const std::function<void(WindowSource&, SortSink&)>& change) {
    PhysicalPlan plan = WithWindow();
    auto& window = std::get<WindowSource>(plan.pipelines[1].source);
    change(window, std::get<SortSink>(plan.pipelines[0].sink));
    // Check does not refuse the schema alone.
    if (const auto output = WindowOutput(plan, window); output.ok()) plan.pipelines[1].schemas[0] = *output;
    return absl::IsInvalidArgument(Check(plan));
  };
  EXPECT_FALSE(refused([](WindowSource&, SortSink&) {}));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.order_keys = 3; }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.order_keys = 2; })) << "a distance over two keys";
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.order_keys = 0; })) << "a distance over none";
  EXPECT_TRUE(refused([](WindowSource&, SortSink& s) { s.order[1].slot = 1; })) << "a distance of texts";
  EXPECT_TRUE(refused([](WindowSource&, SortSink& s) { s.limit = 5; }));
  EXPECT_TRUE(refused([](WindowSource&, SortSink& s) { s.offset = 1; }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[0].frame.start.offset = -1; }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) {
    w.calls[0].frame.start.offset = PackInterval({1, -40, 0});
  })) << "a month less 40 days goes back";
  EXPECT_FALSE(refused([](WindowSource& w, SortSink&) {
    w.calls[0].frame.start.offset = PackInterval({1, -20, 0});
  }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) {
    w.calls[0].frame = {
        WindowFrame::Unit::kRows, {FrameBound::Kind::kFollowing, 1}, {FrameBound::Kind::kCurrentRow, 0}};
  })) << "a frame that ends before it starts";
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[0].arguments = {1}; })) << "a sum of text";
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[0].arguments = {9}; }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[0].arguments = {}; }));
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[1].arguments = {1, 2}; })) << "lag by a date";
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) {
    w.calls[1].arguments = {1, 0, 0};
  })) << "a default of another type";
  EXPECT_TRUE(refused([](WindowSource& w, SortSink&) { w.calls[1].type = Type::Integer(); }));
  PhysicalPlan plan = WithWindow();
  plan.pipelines[0].sink = ResultSink{};
  EXPECT_FALSE(Check(plan).ok()) << "unsorted rows";
  plan = WithWindow();
  plan.pipelines[1].schemas[0].pop_back();
  EXPECT_FALSE(Check(plan).ok());
}

TEST(Check, SortedRowsAreReadInTheirOrder) {
  PhysicalPlan plan = WithWindow();
  plan.pipelines[1].source = PageSource{0, true};
  plan.pipelines[1].schemas[0] = plan.pipelines[0].schemas[0];
  EXPECT_TRUE(Check(plan).ok()) << Check(plan);
  plan.pipelines[0].sink = ResultSink{};
  EXPECT_FALSE(Check(plan).ok()) << "of a sink without order";
  plan.pipelines[0].sink = SortSink{{{7, false, false}}};
  EXPECT_FALSE(Check(plan).ok());
  plan.pipelines[0].sink = SortSink{{}, -1, -1};
  EXPECT_FALSE(Check(plan).ok());
}

TEST(Check, FedSinksTakeTheirRows) {
  const auto fed = [] {
    PhysicalPlan plan;
    Pipeline from, to;
    from.source = ValuesSource{{{Value::Integer(3)}}};
    from.schemas = {{kInt}};
    to.source = ValuesSource{};
    to.schemas = {{{Type::Integer(), true, {-5, 100, true}}}};
    from.estimates = to.estimates = {{}};
    from.sink = FeedSink{1};
    to.sink = SortSink{};
    to.after = {0};
    plan.pipelines = {from, to};
    plan.stages = {{1, {}}};
    return plan;
  };
  using P = PhysicalPlan;
  const auto refused = [&](const std::function<void(P&)>& change) {
    PhysicalPlan plan = fed();
    change(plan);
    return absl::IsInvalidArgument(Check(plan));
  };
  EXPECT_FALSE(refused([](P&) {})) << Check(fed());
  EXPECT_TRUE(refused([](P& p) { p.pipelines[1].after.clear(); }));
  EXPECT_TRUE(refused([](P& p) { p.pipelines[0].sink = FeedSink{0}; }));
  EXPECT_TRUE(refused([](P& p) { p.pipelines[0].sink = FeedSink{2}; }));
  EXPECT_TRUE(refused([](P& p) { p.pipelines[1].schemas[0][0].bounds.high = 98; }))
      << "values out of its bounds";
  EXPECT_TRUE(refused([](P& p) {
    p.pipelines[0].schemas[0][0].nullable = true, p.pipelines[1].schemas[0][0].nullable = false;
  }));
  EXPECT_TRUE(refused([](P& p) { p.pipelines[1].schemas[0].push_back(kInt); }));
  EXPECT_TRUE(refused([](P& p) {
    Pipeline reader = p.pipelines[1];
    reader.source = PageSource{0};
    reader.schemas = {{kInt}};
    reader.sink = ResultSink{};
    p.pipelines.push_back(reader);
    p.stages[0].claimed = 2;
  })) << "it leaves nothing of its own";
}

TEST(Check, SetsAndRepeatsNameSlots) {
  using P = PhysicalPlan;
  const auto refused = [](StepNode step) {
    PhysicalPlan plan = WithWindow();
    Pipeline& p = plan.pipelines[1];
    const absl::StatusOr<Schema> output = StepOutput(plan, step, p.schemas[0]);
    p.schemas.push_back(output.ok() ? *output : p.schemas[0]);
    p.steps.push_back(std::move(step));
    p.estimates.push_back({});
    return absl::IsInvalidArgument(Check(plan));
  };
  EXPECT_FALSE(refused(ExpandStep{{1, 0}, {{0}, {0, 1}, {}}}));
  EXPECT_TRUE(refused(ExpandStep{{1, 0}, {{1, 0}}}));
  EXPECT_TRUE(refused(ExpandStep{{1, 0}, {{2}}}));
  EXPECT_TRUE(refused(ExpandStep{{9}, {{}}}));
  EXPECT_TRUE(refused(ExpandStep{{1}, {}}));
  EXPECT_FALSE(refused(RepeatStep{0}));
  EXPECT_TRUE(refused(RepeatStep{1})) << "as often as a text";
  EXPECT_TRUE(refused(RepeatStep{9}));
  const auto totals = [](const std::function<void(AggregateSink&, P&)>& change) {
    PhysicalPlan plan = WithWindow();
    Pipeline& p = plan.pipelines[1];
    p.steps.push_back(ExpandStep{{1}, {{0}, {}}});
    p.schemas.push_back(*StepOutput(plan, p.steps[0], p.schemas[0]));
    p.estimates.push_back({});
    AggregateSink sink;
    sink.phase = AggregateSink::Phase::kWhole;
    sink.group_by = {Random::Column(p.schemas[1], 6), Random::Column(p.schemas[1], 5)};
    sink.totals = {1};
    change(sink, plan);
    p.sink = std::move(sink);
    return absl::IsInvalidArgument(Check(plan));
  };
  EXPECT_FALSE(totals([](AggregateSink&, P&) {}));
  EXPECT_TRUE(totals([](AggregateSink& s, P&) { s.totals = {2}; })) << "no number of a set";
  EXPECT_TRUE(totals([](AggregateSink& s, P&) { s.phase = AggregateSink::Phase::kPartial; }));
  EXPECT_TRUE(totals([](AggregateSink& s, P&) { s.group_by.clear(); }));
  EXPECT_TRUE(totals([](AggregateSink& s, P& p) {
    s.group_by[1] = Random::Column(p.pipelines[1].schemas[1], 0);
  })) << "a key that is never NULL";
}

TEST(Check, WhatNullsMeanToAProbeIsSaidOnce) {
  using P = PhysicalPlan;
  const auto refused = [](const std::function<void(ProbeStep&, const Expr&)>& change) {
    return Refused([&](P& p) {
      ProbeStep& probe = ProbeIn(p);
      const Schema partners = *PartnerSchema(p, probe, p.pipelines[1].schemas[0]);
      const Expr x = Random::Column(partners, 1);
      change(probe, Random::Node(Op::kEqual, Type::Bool(), {x, x}));
      p.pipelines[1].schemas[1] = *StepOutput(p, probe, p.pipelines[1].schemas[0]);
      p.pipelines[1].sink = ResultSink{};
    });
  };
  EXPECT_FALSE(refused([](ProbeStep& p, const Expr&) { p.kind = JoinKind::kMark, p.null_aware = true; }));
  EXPECT_TRUE(refused([](ProbeStep& p, const Expr&) { p.null_aware = true; })) << "no mark";
  EXPECT_FALSE(refused([](ProbeStep& p, const Expr& x) { p.kind = JoinKind::kMark, p.compared = {x}; }));
  EXPECT_TRUE(refused([](ProbeStep& p, const Expr& x) { p.kind = JoinKind::kSemi, p.compared = {x}; }));
  EXPECT_TRUE(refused(
      [](ProbeStep& p, const Expr& x) { p.kind = JoinKind::kMark, p.null_aware = true, p.compared = {x}; }));
  EXPECT_FALSE(refused([](ProbeStep& p, const Expr&) { p.kind = JoinKind::kNullAwareAnti; }));
  EXPECT_TRUE(
      refused([](ProbeStep& p, const Expr& x) { p.kind = JoinKind::kNullAwareAnti, p.residuals = {x}; }));
  EXPECT_FALSE(refused([](ProbeStep& p, const Expr& x) {
    p.kind = JoinKind::kNullAwareAnti, p.residuals = {x}, p.compared = {x};
  }));
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

TEST(Check, ExchangesHaveBothEndsAtOnce) {
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

TEST(Check, FiltersAreOfBuildSidesThatAreCompleteAndDropNothingThatIsWanted) {
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

TEST(Check, ExchangesRunWithTheirReceivers) {
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
