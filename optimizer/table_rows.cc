#include "optimizer/table_rows.h"

#include <algorithm>
#include <variant>

namespace nam::optimizer {
namespace {

/// Whether servers leave nothing but the pipeline's rows.
bool LeavesAllRows(const plan::PhysicalPlan& plan, uint32_t number) {
  const plan::Pipeline& pipeline = plan.pipelines[number];
  const plan::Stage& stage = plan.stages[pipeline.stage];
  const auto* const result = std::get_if<plan::ResultSink>(&pipeline.sink);
  return stage.site == plan::Stage::Site::kServers && stage.claimed == number && result != nullptr &&
         result->order.empty() && result->limit < 0 && result->runs == plan::Runs::kNever;
}

/// Whether the step looks at each row alone.
bool IsOfRows(const plan::StepNode& step) {
  return !std::holds_alternative<plan::ProbeStep>(step) && !std::holds_alternative<plan::LimitStep>(step);
}

/// Whether the pipeline's rows end in the result.
bool LeadsToResult(const plan::PhysicalPlan& plan, uint32_t number) {
  while (number != plan.stages.back().claimed) {
    const auto* const feed = std::get_if<plan::FeedSink>(&plan.pipelines[number].sink);
    if (feed == nullptr) return false;
    number = feed->pipeline;
  }
  return true;
}

}  // namespace

std::optional<plan::PhysicalPlan> WithWholeRows(const plan::PhysicalPlan& plan, uint32_t pipeline) {
  if (!LeavesAllRows(plan, pipeline)) return std::nullopt;
  std::optional<uint32_t> reader;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const auto* const pages = std::get_if<plan::PageSource>(&plan.pipelines[p].source);
    if (pages == nullptr || pages->pipeline != pipeline) continue;
    if (reader.has_value()) return std::nullopt;
    reader = p;
  }
  if (!reader.has_value() || !LeadsToResult(plan, *reader)) return std::nullopt;
  const std::vector<plan::StepNode>& steps = plan.pipelines[*reader].steps;
  if (!std::all_of(steps.begin(), steps.end(), IsOfRows)) return std::nullopt;
  plan::PhysicalPlan out = plan;
  plan::Pipeline &from = out.pipelines[*reader], &to = out.pipelines[pipeline];
  to.steps.insert(to.steps.end(), from.steps.begin(), from.steps.end());
  to.schemas.insert(to.schemas.end(), from.schemas.begin() + 1, from.schemas.end());
  to.estimates.insert(to.estimates.end(), from.estimates.begin() + 1, from.estimates.end());
  from.steps.clear();
  from.schemas = {to.schemas.back()};
  from.estimates = {to.estimates.back()};
  out.stages[to.stage].result = {};
  return out;
}

}  // namespace nam::optimizer
