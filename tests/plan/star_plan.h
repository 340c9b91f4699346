#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "plan/check.h"
#include "plan/flow.h"
#include "tests/plan/random_expression.h"

/// The plan that checks are tested with.
namespace nam::plan::testing {

inline const Slot kInt{Type::Integer(), false, {0, 99, true}};

inline Pipeline Scan(uint32_t table, Schema slots) {
  Pipeline p;
  BlockScan scan;
  scan.table = table;
  for (uint32_t i = 0; i < slots.size(); ++i) scan.columns.push_back(i), scan.output.push_back(i);
  scan.slots = slots;
  p.source = std::move(scan);
  p.schemas = {std::move(slots)};
  p.estimates = {{}};
  return p;
}

/// d (key, attribute) is built, f (key, measure) probes it and sums its measure by the attribute.
inline PhysicalPlan Star() {
  PhysicalPlan plan;
  plan.tables = {{"d", 3, false}, {"f", 4, false}};
  Pipeline build = Scan(0, {kInt, {Type::String(), true, {}}});
  build.sink = BuildSink{{Random::Column(build.schemas[0], 0)}, {1}, true};
  plan.pipelines.push_back(std::move(build));
  Pipeline main = Scan(1, {kInt, {Type::Decimal(2), false, {-5, 500, true}}});
  ProbeStep probe;
  probe.keys = {Random::Column(main.schemas[0], 0)};
  probe.keep = {1};
  probe.fetch = {0};
  main.schemas.push_back(*StepOutput(plan, probe, main.schemas[0]));
  main.steps = {probe};
  main.estimates.push_back({});
  AggregateSink sink;
  sink.group_by = {Random::Column(main.schemas[1], 1)};
  sink.aggregates = {{AggregateFunction::kSum, Random::Column(main.schemas[1], 0), Type::Decimal(2)},
                     {AggregateFunction::kCountRows, {}, Type::Integer()}};
  main.sink = std::move(sink);
  main.after = {0};
  plan.pipelines.push_back(std::move(main));
  plan.stages = {{1, {}}};
  return plan;
}

inline BlockScan& ScanIn(PhysicalPlan& p, size_t pipeline) {
  return std::get<BlockScan>(p.pipelines[pipeline].source);
}
inline ProbeStep& ProbeIn(PhysicalPlan& p) {
  return std::get<ProbeStep>(p.pipelines[1].steps[0]);
}
inline AggregateSink& GroupsIn(PhysicalPlan& p) {
  return std::get<AggregateSink>(p.pipelines[1].sink);
}

/// Whether Check refuses the star once it is changed.
inline bool Refused(const std::function<void(PhysicalPlan&)>& change) {
  PhysicalPlan plan = Star();
  change(plan);
  return absl::IsInvalidArgument(Check(plan));
}

}  // namespace nam::plan::testing
