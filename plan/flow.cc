#include "plan/flow.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "plan/slot_of.h"

namespace nam::plan {
namespace {

constexpr Bounds kCounts{0, std::numeric_limits<int64_t>::max(), true};

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(std::string("not a plan: ") + what);
}

/// What keys and arguments of an aggregation yield over rows.
absl::StatusOr<Schema> SlotsOf(std::span<const Expr> exprs, const Schema& input) {
  Schema out;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Slot slot, SlotOf(expr, input));
    out.push_back(std::move(slot));
  }
  return out;
}

/// slots[which[…]]; `which` ascends.
absl::Status Pick(const Schema& slots, std::span<const uint32_t> which, bool nullable, Schema& out) {
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i] >= slots.size()) return Bad("a slot that is not there");
    if (i > 0 && which[i] <= which[i - 1]) return Bad("slots that do not ascend");
    Slot& slot = out.emplace_back(slots[which[i]]);
    slot.nullable = slot.nullable || nullable;
  }
  return absl::OkStatus();
}

const Schema& LastSchema(const Pipeline& pipeline) {
  return pipeline.schemas.back();
}

/// What the build has for probes.
absl::StatusOr<Schema> PayloadOf(const PhysicalPlan& plan, uint32_t build) {
  if (build >= plan.pipelines.size()) return Bad("a probe of no pipeline");
  const Pipeline& pipeline = plan.pipelines[build];
  if (!std::holds_alternative<BuildSink>(pipeline.sink))
    return Bad("a probe of a pipeline that builds nothing");
  return SinkOutput(pipeline);
}

absl::StatusOr<Schema> Joined(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input,
                              bool left_nullable, bool right_nullable) {
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(input, probe.keep, left_nullable, out));
  NAM_ASSIGN_OR_RETURN(const Schema payload, PayloadOf(plan, probe.build));
  NAM_RETURN_IF_ERROR(Pick(payload, probe.fetch, right_nullable, out));
  return out;
}

absl::StatusOr<Schema> ProbeOutput(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input) {
  switch (probe.kind) {
    case JoinKind::kInner:
      return Joined(plan, probe, input, false, false);
    case JoinKind::kLeft:
    case JoinKind::kSingle:
      return Joined(plan, probe, input, false, true);
    case JoinKind::kRight:
      return Joined(plan, probe, input, true, false);
    case JoinKind::kFull:
      return Joined(plan, probe, input, true, true);
    default:
      break;
  }
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(input, probe.keep, false, out));
  if (probe.kind == JoinKind::kMark) out.push_back({Type::Bool(), true, {}});
  return out;
}

absl::StatusOr<Schema> Results(const AggregateSink& sink, const Schema& input) {
  NAM_ASSIGN_OR_RETURN(Schema out, SlotsOf(sink.group_by, input));
  // A state is what the result is; of an average they are two.
  size_t state = out.size();
  const bool from_states = sink.phase == AggregateSink::Phase::kFinal;
  for (const Aggregate& aggregate : sink.aggregates) {
    Slot slot{aggregate.type, true, {}};
    switch (aggregate.function) {
      case AggregateFunction::kCountRows:
      case AggregateFunction::kCount:
      case AggregateFunction::kCountDistinct:
        slot = {aggregate.type, false, kCounts};
        break;
      case AggregateFunction::kMin:
      case AggregateFunction::kMax:
        if (from_states) {
          if (state < input.size()) slot.bounds = input[state].bounds;
        } else {
          NAM_ASSIGN_OR_RETURN(const Slot argument, SlotOf(aggregate.argument, input));
          slot.bounds = argument.bounds;
        }
        break;
      default:
        break;
    }
    state += aggregate.function == AggregateFunction::kAverage ? 2 : 1;
    out.push_back(std::move(slot));
  }
  return out;
}

absl::StatusOr<Schema> GroupsOf(const AggregateSink& sink, const Schema& input) {
  using Phase = AggregateSink::Phase;
  if (sink.phase == Phase::kMerge) return input;
  if (sink.phase != Phase::kPartial) return Results(sink, input);
  NAM_ASSIGN_OR_RETURN(const Schema keys, SlotsOf(sink.group_by, input));
  Schema arguments;
  for (const Aggregate& aggregate : sink.aggregates) {
    Slot& slot = arguments.emplace_back();
    if (aggregate.function == AggregateFunction::kCountRows) continue;
    NAM_ASSIGN_OR_RETURN(slot, SlotOf(aggregate.argument, input));
  }
  return StatesOf(keys, sink.aggregates, arguments);
}

}  // namespace

Schema StatesOf(std::span<const Slot> keys, std::span<const Aggregate> aggregates,
                std::span<const Slot> arguments) {
  Schema out(keys.begin(), keys.end());
  const Slot count{Type::Integer(), false, kCounts};
  for (size_t a = 0; a < aggregates.size(); ++a) {
    switch (aggregates[a].function) {
      case AggregateFunction::kCountRows:
      case AggregateFunction::kCount:
      case AggregateFunction::kCountDistinct:
        out.push_back(count);
        break;
      case AggregateFunction::kSum:
        out.push_back({arguments[a].type, true, {}});
        break;
      case AggregateFunction::kAverage:
        out.push_back({arguments[a].type, true, {}});
        out.push_back(count);
        break;
      default:
        out.push_back({arguments[a].type, true, arguments[a].bounds});
    }
  }
  return out;
}

absl::StatusOr<Schema> ScanOutput(const TableScan& scan) {
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(scan.slots, scan.output, false, out));
  return out;
}

absl::StatusOr<Schema> StepOutput(const PhysicalPlan& plan, const StepNode& step, const Schema& input) {
  if (const auto* project = std::get_if<ProjectStep>(&step)) return SlotsOf(project->outputs, input);
  if (const auto* probe = std::get_if<ProbeStep>(&step)) return ProbeOutput(plan, *probe, input);
  return input;
}

absl::StatusOr<Schema> PartnerSchema(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input) {
  return Joined(plan, probe, input, false, false);
}

absl::StatusOr<Schema> SinkOutput(const Pipeline& pipeline) {
  if (pipeline.schemas.empty()) return Bad("a pipeline without schemas");
  const Schema& input = LastSchema(pipeline);
  if (const auto* build = std::get_if<BuildSink>(&pipeline.sink)) {
    Schema out;
    NAM_RETURN_IF_ERROR(Pick(input, build->payload, false, out));
    return out;
  }
  if (const auto* aggregate = std::get_if<AggregateSink>(&pipeline.sink)) return GroupsOf(*aggregate, input);
  return input;
}

std::optional<uint32_t> SourceSlotOf(const Pipeline& pipeline, size_t step, uint32_t slot) {
  for (size_t s = step; s > 0; --s) {
    const StepNode& node = pipeline.steps[s - 1];
    if (const auto* project = std::get_if<ProjectStep>(&node)) {
      const std::optional<uint32_t> from = BareSlot(project->outputs[slot]);
      if (!from) return std::nullopt;
      slot = *from;
    } else if (const auto* probe = std::get_if<ProbeStep>(&node)) {
      // A right or full join also makes rows that no source row is behind.
      const bool invents = probe->kind == JoinKind::kRight || probe->kind == JoinKind::kFull;
      if (invents || slot >= probe->keep.size()) return std::nullopt;
      slot = probe->keep[slot];
    }
  }
  return slot;
}

const TableScan* ScanOf(const Pipeline& pipeline) {
  if (const auto* blocks = std::get_if<BlockScan>(&pipeline.source)) return blocks;
  return std::get_if<RecordScan>(&pipeline.source);
}

}  // namespace nam::plan
