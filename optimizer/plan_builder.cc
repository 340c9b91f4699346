#include "optimizer/plan_builder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/distribution.h"
#include "plan/check.h"
#include "plan/flow.h"
#include "plan/table_schema.h"

namespace nam::optimizer {
namespace {

/// Calls visit(number) for every pipeline that this one names.
template <typename Visit>
void ForNames(plan::Pipeline& pipeline, Visit visit) {
  if (auto* pages = std::get_if<plan::PageSource>(&pipeline.source)) visit(pages->pipeline);
  if (auto* window = std::get_if<plan::WindowSource>(&pipeline.source)) visit(window->pipeline);
  if (auto* parts = std::get_if<plan::PartitionSource>(&pipeline.source)) visit(parts->pipeline);
  if (auto* join = std::get_if<plan::JoinSource>(&pipeline.source)) {
    visit(join->probed);
    visit(join->probe.build);
  }
  for (plan::StepNode& step : pipeline.steps) {
    if (auto* probe = std::get_if<plan::ProbeStep>(&step)) visit(probe->build);
  }
  if (auto* send = std::get_if<plan::ExchangeSend>(&pipeline.sink); send != nullptr && send->filtered_by)
    visit(*send->filtered_by);
  if (auto* feed = std::get_if<plan::FeedSink>(&pipeline.sink)) visit(feed->pipeline);
  for (uint32_t& before : pipeline.after) visit(before);
}

}  // namespace

uint32_t PlanBuilder::AddTable(std::shared_ptr<const proto::Table> table) {
  plan_.tables.push_back({table->name(), table->allocation(), table->has_record()});
  tables_.push_back(std::move(table));
  return static_cast<uint32_t>(tables_.size()) - 1;
}

uint32_t PlanBuilder::AddStage(ServerStage stage) {
  stages_.push_back(std::move(stage));
  return static_cast<uint32_t>(stages_.size()) - 1;
}

void PlanBuilder::MoveStage(uint32_t from, uint32_t to) {
  NAM_CHECK(from != to && stages_[from].has_value() && stages_[to].has_value());
  for (plan::Pipeline& pipeline : plan_.pipelines) {
    if (pipeline.stage == from) pipeline.stage = to;
  }
  stages_[from].reset();
}

uint32_t PlanBuilder::EndStage(uint32_t number) {
  ended_.push_back(number);
  return static_cast<uint32_t>(ended_.size()) - 1;
}

absl::StatusOr<Flow> PlanBuilder::Open(uint32_t before, uint32_t site, Layout layout, bool in_order) const {
  const plan::Pipeline& from = plan_.pipelines[before];
  NAM_ASSIGN_OR_RETURN(plan::Schema left, plan::SinkOutput(from));
  NAM_CHECK(left.size() == layout.size(), "a name for each slot");
  Flow flow{.pipeline = {.source = plan::PageSource{before, in_order},
                         .steps = {},
                         .sink = {},
                         .schemas = {std::move(left)},
                         .estimates = {{from.estimates.back().rows, 1}},
                         .after = {before},
                         .stage = site},
            .layout = std::move(layout)};
  return flow;
}

absl::Status PlanBuilder::Append(plan::StepNode step, Layout layout, double rows, Flow& flow) const {
  NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::StepOutput(plan_, step, flow.schema()));
  NAM_CHECK(flows.size() == layout.size(), "a name for each slot");
  if (const auto* probe = std::get_if<plan::ProbeStep>(&step)) {
    std::vector<uint32_t>& after = flow.pipeline.after;
    const auto place = std::lower_bound(after.begin(), after.end(), probe->build);
    if (place == after.end() || *place != probe->build) after.insert(place, probe->build);
  }
  flow.pipeline.steps.push_back(std::move(step));
  flow.pipeline.schemas.push_back(std::move(flows));
  flow.pipeline.estimates.push_back({rows, 1});
  flow.layout = std::move(layout);
  return absl::OkStatus();
}

uint32_t PlanBuilder::Close(Flow flow, plan::SinkNode sink) {
  flow.pipeline.sink = std::move(sink);
  plan_.pipelines.push_back(std::move(flow.pipeline));
  return static_cast<uint32_t>(plan_.pipelines.size()) - 1;
}

absl::StatusOr<Flow> PlanBuilder::Through(Flow flow, plan::SinkNode sink, Layout layout, bool in_order) {
  const uint32_t number = Close(std::move(flow), std::move(sink));
  return Open(number, Flow::kSession, std::move(layout), in_order);
}

void PlanBuilder::Renumber(const std::vector<uint32_t>& number_of) {
  std::vector<plan::Pipeline> pipelines(plan_.pipelines.size());
  for (size_t p = 0; p < pipelines.size(); ++p) {
    plan::Pipeline& pipeline = pipelines[number_of[p]] = std::move(plan_.pipelines[p]);
    ForNames(pipeline, [&](uint32_t& number) { number = number_of[number]; });
    std::sort(pipeline.after.begin(), pipeline.after.end());
  }
  plan_.pipelines = std::move(pipelines);
  for (JoinChoice& join : joins_) join.build = number_of[join.build];
  for (GroupChoice& groups : groups_) groups.pipeline = number_of[groups.pipeline];
}

absl::StatusOr<LoweredPlan> PlanBuilder::Finish() {
  LoweredPlan out;
  std::vector<uint32_t> order = ended_;
  order.push_back(Flow::kSession);

  std::vector<uint32_t> number_of(plan_.pipelines.size());
  uint32_t next = 0;
  for (uint32_t s = 0; s < order.size(); ++s) {
    for (size_t p = 0; p < plan_.pipelines.size(); ++p) {
      if (plan_.pipelines[p].stage == order[s]) number_of[p] = next++;
    }
    const bool session = order[s] == Flow::kSession;
    plan_.stages.push_back({.claimed = next - 1,
                            .result = {},
                            .site = session ? plan::Stage::Site::kSession : plan::Stage::Site::kServers});
    if (!session) out.stages.push_back(*std::move(stages_[order[s]]));
  }
  for (plan::Pipeline& pipeline : plan_.pipelines)
    pipeline.stage =
        static_cast<uint32_t>(std::find(order.begin(), order.end(), pipeline.stage) - order.begin());
  Renumber(number_of);
  StatePartitionMatches(tables_, plan_);
  NAM_RETURN_IF_ERROR(plan::Check(plan_));
  NAM_RETURN_IF_ERROR(plan::CheckTables(plan_, tables_));
  out.plan = std::move(plan_);
  out.tables = std::move(tables_);
  out.joins = std::move(joins_);
  out.groups = std::move(groups_);
  return out;
}

}  // namespace nam::optimizer
