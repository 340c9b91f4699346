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

TEST(Check, FilesAreReadInTheSession) {
  Pipeline p;
  p.source = FileSource{3, "read_csv('a.csv')", {0, 2}, {"n", "m"}};
  p.schemas = {{kInt, kInt}};
  p.estimates = {{}};
  p.sink = ResultSink{};
  const auto refused = [&](const FileSource& files, Stage::Site site) {
    PhysicalPlan plan;
    plan.pipelines = {p};
    plan.pipelines[0].source = files;
    plan.stages = {{0, {}, site}};
    return absl::IsInvalidArgument(Check(plan));
  };
  const FileSource files = std::get<FileSource>(p.source);
  EXPECT_FALSE(refused(files, Stage::Site::kSession));
  EXPECT_TRUE(refused(files, Stage::Site::kServers));
  EXPECT_TRUE(refused({3, "", {2, 0}, {"m", "n"}}, Stage::Site::kSession));
  EXPECT_TRUE(refused({3, "", {0}, {"n"}}, Stage::Site::kSession)) << "of two slots";
  EXPECT_TRUE(refused({3, "", {0, 2}, {"n"}}, Stage::Site::kSession));
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

}  // namespace
}  // namespace nam::plan
