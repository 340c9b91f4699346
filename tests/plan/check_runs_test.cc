#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "plan/check.h"
#include "plan/flow.h"
#include "tests/plan/star_plan.h"

/// Plans whose sorted rows may be runs in scratch memory.
namespace nam::plan {
namespace {

using testing::kInt;
using testing::Scan;

/// Servers sort f's rows, and the session merges them.
PhysicalPlan WithRuns() {
  PhysicalPlan plan;
  plan.tables = {{"f", 4, false}};
  Pipeline sorted = Scan(0, {kInt, {Type::String(), true, {}}});
  sorted.sink = ResultSink{{{1, true, true}, {0, false, false}}, -1, Runs::kIfMany};
  plan.pipelines.push_back(std::move(sorted));
  Pipeline merge;
  merge.source = PageSource{0};
  merge.schemas = {*SinkOutput(plan.pipelines[0])};
  merge.estimates = {{}};
  merge.sink = SortSink{{{1, true, true}, {0, false, false}}, -1, 0, Runs::kIfMany};
  merge.after = {0};
  merge.stage = 1;
  Pipeline result = merge;
  result.source = PageSource{1, /*in_order=*/true};
  result.sink = ResultSink{};
  result.after = {1};
  plan.pipelines.push_back(std::move(merge));
  plan.pipelines.push_back(std::move(result));
  plan.stages = {{0, {}}, {2, {}, Stage::Site::kSession}};
  return plan;
}

TEST(CheckRuns, RunsAreMergedInTheirOrder) {
  ASSERT_TRUE(Check(WithRuns()).ok()) << Check(WithRuns());
  const auto refused = [](const std::function<void(PhysicalPlan&, ResultSink&, SortSink&)>& change) {
    PhysicalPlan plan = WithRuns();
    change(plan, std::get<ResultSink>(plan.pipelines[0].sink), std::get<SortSink>(plan.pipelines[1].sink));
    return absl::IsInvalidArgument(Check(plan));
  };
  using Plan = PhysicalPlan;
  using Runs = ResultSink;
  using Sort = SortSink;
  EXPECT_FALSE(refused([](Plan&, Runs&, Sort&) {}));
  EXPECT_FALSE(refused([](Plan&, Runs& r, Sort& s) { r.order.pop_back(), s.order.pop_back(); }));
  EXPECT_FALSE(refused([](Plan&, Runs& r, Sort&) { r = ResultSink{}; })) << "pages alone";
  EXPECT_TRUE(refused([](Plan&, Runs&, Sort& s) { s.order[0].nulls_first = false; })) << "another order";
  EXPECT_TRUE(refused([](Plan&, Runs&, Sort& s) { s.order.pop_back(); }));
  EXPECT_TRUE(refused([](Plan&, Runs&, Sort& s) { s.runs = nam::plan::Runs::kNever; }));
  EXPECT_TRUE(refused([](Plan&, Runs& r, Sort& s) { r.order.clear(), s.order.clear(); }));
  EXPECT_TRUE(refused([](Plan&, Runs& r, Sort&) { r.limit = 5; }));
  EXPECT_TRUE(refused([](Plan&, Runs&, Sort& s) { s.limit = 5; }));
  EXPECT_TRUE(refused([](Plan&, Runs&, Sort& s) { s.offset = 5; }));
  EXPECT_TRUE(refused([](Plan& p, Runs& r, Sort&) { p.pipelines[2].sink = r; })) << "runs of the session";
  EXPECT_TRUE(refused([](Plan& p, Runs&, Sort&) { p.stages[1].site = Stage::Site::kServers; }));
  EXPECT_TRUE(refused([](Plan& p, Runs&, Sort&) { p.pipelines[1].sink = ResultSink{}; })) << "no merge";
  Plan steps = WithRuns();
  Pipeline& merge = steps.pipelines[1];
  merge.steps = {LimitStep{}};
  merge.schemas.push_back(merge.schemas[0]);
  merge.estimates.push_back({});
  EXPECT_FALSE(Check(steps).ok()) << "runs that a step reads";
}

}  // namespace
}  // namespace nam::plan
