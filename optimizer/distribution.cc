#include "optimizer/distribution.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "plan/flow.h"
#include "plan/table_schema.h"

namespace nam::optimizer {
namespace {

using plan::Distribution;

Distribution::Function DistributionFunctionOf(proto::PartitionFunction function) {
  return function == proto::MODULO ? Distribution::Function::kModulo : Distribution::Function::kXxh3;
}

/// The place of the input's slot in a step's output.
std::optional<uint32_t> SlotAfter(const plan::StepNode& step, uint32_t slot) {
  if (const auto* project = std::get_if<plan::ProjectStep>(&step)) {
    for (uint32_t i = 0; i < project->outputs.size(); ++i) {
      if (plan::BareSlot(project->outputs[i]) == slot) return i;
    }
    return std::nullopt;
  }
  if (const auto* probe = std::get_if<plan::ProbeStep>(&step)) {
    const auto found = std::find(probe->keep.begin(), probe->keep.end(), slot);
    if (found == probe->keep.end()) return std::nullopt;
    return static_cast<uint32_t>(found - probe->keep.begin());
  }
  return slot;
}

/// The column of a pipeline's key, if its source reads it and nothing computes it.
std::optional<uint32_t> ColumnOfKey(const plan::Pipeline& pipeline, size_t step, const plan::Expr& key) {
  const auto* scan = std::get_if<plan::BlockScan>(&pipeline.source);
  const std::optional<uint32_t> slot = plan::BareSlot(key);
  if (scan == nullptr || !slot) return std::nullopt;
  const std::optional<uint32_t> of_source = plan::SourceSlotOf(pipeline, step, *slot);
  if (!of_source) return std::nullopt;
  return scan->columns[scan->output[*of_source]];
}

/// Whether a probe needs only partners of its own rows.
bool AsksForPartners(const plan::ProbeStep& probe) {
  using plan::JoinKind;
  return probe.kind == JoinKind::kInner || probe.kind == JoinKind::kLeft || probe.kind == JoinKind::kSemi ||
         probe.kind == JoinKind::kAnti || probe.kind == JoinKind::kSingle;
}

/// The claimed table's key by which all probes of build side `number` match it with their key `place`.
std::optional<int32_t> MatchOf(const TableRefs& tables, const plan::PhysicalPlan& plan, uint32_t number,
                               size_t place) {
  const plan::Pipeline& build = plan.pipelines[number];
  const auto& sink = std::get<plan::BuildSink>(build.sink);
  const uint32_t claimed = plan.stages[build.stage].claimed;
  const auto* scan = std::get_if<plan::BlockScan>(&plan.pipelines[claimed].source);
  if (scan == nullptr || claimed == number) return std::nullopt;
  const std::optional<uint32_t> built = ColumnOfKey(build, build.steps.size(), sink.keys[place]);
  if (!built) return std::nullopt;
  std::optional<int32_t> match;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const plan::Pipeline& pipeline = plan.pipelines[p];
    for (size_t s = 0; s < pipeline.steps.size(); ++s) {
      const auto* probe = std::get_if<plan::ProbeStep>(&pipeline.steps[s]);
      if (probe == nullptr || probe->build != number) continue;
      const std::optional<uint32_t> probed = ColumnOfKey(pipeline, s, probe->keys[place]);
      if (p != claimed || !AsksForPartners(*probe) || !probed) return std::nullopt;
      const std::optional<int32_t> key = plan::MatchingKey(
          *tables[std::get<plan::BlockScan>(build.source).table], *built, *tables[scan->table], *probed);
      if (!key || (match && match != key)) return std::nullopt;
      match = key;
    }
  }
  return match;
}

}  // namespace

plan::Distribution DistributionOf(const plan::TableScan& scan, const proto::Table& table) {
  if (table.partitioning_size() != 1) return {};
  const proto::PartitionKey& key = table.partitioning(0);
  for (uint32_t i = 0; i < scan.output.size(); ++i) {
    if (table.columns(static_cast<int>(scan.columns[scan.output[i]])).name() != key.column()) continue;
    return {Distribution::Kind::kPartitioned, DistributionFunctionOf(key.function()), key.parts(), {i}};
  }
  return {};
}

plan::Distribution DistributionAfter(const plan::Distribution& input, const plan::StepNode& step) {
  const auto* probe = std::get_if<plan::ProbeStep>(&step);
  const bool unmatched =
      probe != nullptr && (probe->kind == plan::JoinKind::kRight || probe->kind == plan::JoinKind::kFull);
  // Any server may emit the build side's rows without a partner.
  if (unmatched && input.kind != Distribution::Kind::kSingle) return {};
  Distribution out = input;
  for (uint32_t& column : out.columns) {
    const std::optional<uint32_t> slot = SlotAfter(step, column);
    if (!slot) return {};
    column = *slot;
  }
  return out;
}

bool Satisfies(const plan::Distribution& have, const plan::Distribution& wanted) {
  return wanted.kind == Distribution::Kind::kAny || have == wanted ||
         (have.kind == wanted.kind && have.kind != Distribution::Kind::kPartitioned);
}

bool KeepsTogether(const plan::Distribution& have, std::span<const uint32_t> slots) {
  if (have.kind != Distribution::Kind::kPartitioned) return have.kind != Distribution::Kind::kAny;
  return std::all_of(have.columns.begin(), have.columns.end(), [&](uint32_t column) {
    return std::find(slots.begin(), slots.end(), column) != slots.end();
  });
}

void StatePartitionMatches(const TableRefs& tables, plan::PhysicalPlan& plan) {
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    auto* scan = std::get_if<plan::BlockScan>(&plan.pipelines[p].source);
    if (scan == nullptr || !std::holds_alternative<plan::BuildSink>(plan.pipelines[p].sink)) continue;
    scan->co_partitioned_key = -1;
    const size_t keys = std::get<plan::BuildSink>(plan.pipelines[p].sink).keys.size();
    for (size_t place = 0; place < keys && scan->co_partitioned_key < 0; ++place)
      scan->co_partitioned_key = MatchOf(tables, plan, p, place).value_or(-1);
  }
}

}  // namespace nam::optimizer
