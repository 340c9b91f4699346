#include "plan/flow.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "plan/plan_error.h"
#include "plan/slot_of.h"

namespace nam::plan {
namespace {

/// The slots of an aggregation's keys or arguments over rows.
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
    if (which[i] >= slots.size()) return BadPlan("a slot that is not there");
    if (i > 0 && which[i] <= which[i - 1]) return BadPlan("slots that do not ascend");
    Slot& slot = out.emplace_back(slots[which[i]]);
    slot.nullable = slot.nullable || nullable;
  }
  return absl::OkStatus();
}

const Schema& LastSchema(const Pipeline& pipeline) {
  return pipeline.schemas.back();
}

/// The payload that the build has for probes.
absl::StatusOr<Schema> PayloadOf(const PhysicalPlan& plan, uint32_t build) {
  if (build >= plan.pipelines.size()) return BadPlan("a probe of no pipeline");
  const Pipeline& pipeline = plan.pipelines[build];
  if (!std::holds_alternative<BuildSink>(pipeline.sink))
    return BadPlan("a probe of a pipeline that builds nothing");
  return SinkOutput(pipeline);
}

absl::StatusOr<Schema> JoinedSchema(const ProbeStep& probe, const Schema& input, const Schema& payload,
                                    bool left_nullable, bool right_nullable) {
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(input, probe.keep, left_nullable, out));
  NAM_RETURN_IF_ERROR(Pick(payload, probe.fetch, right_nullable, out));
  return out;
}

absl::StatusOr<Schema> ProbeOutput(const ProbeStep& probe, const Schema& input, const Schema& payload) {
  switch (probe.kind) {
    case JoinKind::kInner:
      return JoinedSchema(probe, input, payload, false, false);
    case JoinKind::kLeft:
    case JoinKind::kSingle:
      return JoinedSchema(probe, input, payload, false, true);
    case JoinKind::kRight:
      return JoinedSchema(probe, input, payload, true, false);
    case JoinKind::kFull:
      return JoinedSchema(probe, input, payload, true, true);
    default:
      break;
  }
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(input, probe.keep, false, out));
  if (probe.kind == JoinKind::kMark)
    out.push_back({Type::Bool(), probe.null_aware || !probe.compared.empty(), {}});
  return out;
}

/// The slots of an aggregate's arguments. For states these are the NULLs in their place, with the state's
/// bounds.
absl::StatusOr<Schema> ArgumentSlots(const Aggregate& aggregate, const Schema& input) {
  const Expr* const exprs[] = {&aggregate.argument, &aggregate.second};
  Schema out;
  for (size_t i = 0; i < std::min(ArgumentsOf(aggregate.function), std::size(exprs)); ++i) {
    NAM_ASSIGN_OR_RETURN(Slot slot, SlotOf(*exprs[i], input));
    out.push_back(std::move(slot));
  }
  return out;
}

absl::StatusOr<Schema> Results(const AggregateSink& sink, const Schema& input) {
  NAM_ASSIGN_OR_RETURN(Schema out, SlotsOf(sink.group_by, input));
  size_t state = out.size();
  const bool from_states = sink.phase == AggregateSink::Phase::kFinal;
  for (const Aggregate& aggregate : sink.aggregates) {
    NAM_ASSIGN_OR_RETURN(Schema arguments, ArgumentSlots(aggregate, input));
    if (arguments.size() < ArgumentsOf(aggregate.function))
      return BadPlan("an aggregate without its arguments");
    const size_t states = StateSlotsOf(aggregate);
    if (from_states && states == 1 && !arguments.empty() && state < input.size())
      arguments[0].bounds = input[state].bounds;
    state += states;
    out.push_back(AggregateResult(aggregate.function, aggregate.type, arguments));
  }
  return out;
}

/// The input, the keys, each NULL where a set lacks it, and the set.
absl::StatusOr<Schema> Expanded(const ExpandStep& expand, const Schema& input) {
  Schema out = input;
  for (uint32_t k = 0; k < expand.keys.size(); ++k) {
    if (expand.keys[k] >= input.size()) return BadPlan("a slot that is not there");
    Slot& key = out.emplace_back(input[expand.keys[k]]);
    for (const std::vector<uint32_t>& set : expand.sets)
      key.nullable = key.nullable || std::find(set.begin(), set.end(), k) == set.end();
  }
  const auto last = static_cast<int64_t>(expand.sets.size()) - 1;
  out.push_back({Type::Integer(), false, {0, std::max<int64_t>(last, 0), true}});
  return out;
}

/// The input, then the number, which lies between the ends whatever the step is.
absl::StatusOr<Schema> WithSeries(const SeriesStep& series, const Schema& input) {
  NAM_ASSIGN_OR_RETURN(const Slot first, SlotOf(series.first, input));
  NAM_ASSIGN_OR_RETURN(const Slot last, SlotOf(series.last, input));
  NAM_ASSIGN_OR_RETURN(const Slot step, SlotOf(series.step, input));
  const bool numbers = first.type.kind == TypeKind::kInteger || first.type.kind == TypeKind::kDecimal;
  const bool times = first.type.kind == TypeKind::kTimestamp || first.type.kind == TypeKind::kTimestampTz;
  if (first.type != last.type ||
      !(numbers ? step.type == first.type : times && step.type.kind == TypeKind::kInterval))
    return BadPlan("a series of something else than numbers or timestamps");
  Schema out = input;
  const bool known = first.bounds.known && last.bounds.known;
  out.push_back({first.type, false,
                 known ? Bounds{std::min(first.bounds.low, last.bounds.low),
                                std::max(first.bounds.high, last.bounds.high), true}
                       : Bounds{}});
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

absl::StatusOr<Schema> ScanOutput(const TableScan& scan) {
  Schema out;
  NAM_RETURN_IF_ERROR(Pick(scan.slots, scan.output, false, out));
  return out;
}

absl::StatusOr<Schema> StepOutput(const PhysicalPlan& plan, const StepNode& step, const Schema& input) {
  if (const auto* project = std::get_if<ProjectStep>(&step)) return SlotsOf(project->outputs, input);
  if (const auto* probe = std::get_if<ProbeStep>(&step)) {
    NAM_ASSIGN_OR_RETURN(const Schema payload, PayloadOf(plan, probe->build));
    return ProbeOutput(*probe, input, payload);
  }
  if (const auto* expand = std::get_if<ExpandStep>(&step)) return Expanded(*expand, input);
  if (const auto* series = std::get_if<SeriesStep>(&step)) return WithSeries(*series, input);
  return input;
}

absl::StatusOr<Schema> PartnerSchema(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input) {
  NAM_ASSIGN_OR_RETURN(const Schema payload, PayloadOf(plan, probe.build));
  return JoinedSchema(probe, input, payload, false, false);
}

absl::StatusOr<Schema> WindowOutput(const PhysicalPlan& plan, const WindowSource& window) {
  if (window.pipeline >= plan.pipelines.size()) return BadPlan("a window over no pipeline");
  const Pipeline& from = plan.pipelines[window.pipeline];
  const auto* sort = std::get_if<SortSink>(&from.sink);
  if (sort == nullptr) return BadPlan("a window over rows without an order");
  if (uint64_t{window.partition_keys} + window.order_keys > sort->order.size())
    return BadPlan("a window by more keys than its rows are sorted by");
  NAM_ASSIGN_OR_RETURN(Schema out, SinkOutput(from));
  const Schema rows = out;
  for (const Order& order : sort->order) {
    if (order.slot >= rows.size()) return BadPlan("an order by a slot that is not there");
  }
  const std::span<const Order> order =
      std::span(sort->order).subspan(window.partition_keys, window.order_keys);
  for (const WindowCall& call : window.calls) {
    NAM_ASSIGN_OR_RETURN(Slot result, ResultOf(call, rows, order));
    out.push_back(std::move(result));
  }
  return out;
}

absl::StatusOr<Schema> PartitionOutput(const PhysicalPlan& plan, const PartitionSource& source) {
  if (source.pipeline >= plan.pipelines.size()) return BadPlan("parts of no pipeline");
  NAM_ASSIGN_OR_RETURN(Schema left, SinkOutput(plan.pipelines[source.pipeline]));
  if (!source.merge.has_value()) return left;
  return GroupsOf(*source.merge, left);
}

absl::StatusOr<JoinSchemas> SchemasOf(const PhysicalPlan& plan, const JoinSource& join) {
  const size_t pipelines = plan.pipelines.size();
  if (join.probed >= pipelines || join.probe.build >= pipelines) return BadPlan("parts of no pipeline");
  JoinSchemas out;
  NAM_ASSIGN_OR_RETURN(out.probed, SinkOutput(plan.pipelines[join.probed]));
  NAM_ASSIGN_OR_RETURN(out.built, SinkOutput(plan.pipelines[join.probe.build]));
  Schema payload;
  NAM_RETURN_IF_ERROR(Pick(out.built, join.build.payload, false, payload));
  NAM_ASSIGN_OR_RETURN(out.partners, JoinedSchema(join.probe, out.probed, payload, false, false));
  NAM_ASSIGN_OR_RETURN(out.output, ProbeOutput(join.probe, out.probed, payload));
  return out;
}

bool AsksForNulls(const ProbeStep& probe) {
  return probe.null_aware || (probe.kind == JoinKind::kNullAwareAnti && probe.compared.empty());
}

bool GoesByParts(const AggregateSink& sink) {
  return sink.phase == AggregateSink::Phase::kPartial && !sink.group_by.empty() &&
         std::none_of(sink.aggregates.begin(), sink.aggregates.end(), IsDistinct);
}

absl::StatusOr<Schema> SinkOutput(const Pipeline& pipeline) {
  if (pipeline.schemas.empty()) return BadPlan("a pipeline without schemas");
  const Schema& input = LastSchema(pipeline);
  if (const auto* build = std::get_if<BuildSink>(&pipeline.sink)) {
    Schema out;
    NAM_RETURN_IF_ERROR(Pick(input, build->payload, false, out));
    return out;
  }
  if (const auto* aggregate = std::get_if<AggregateSink>(&pipeline.sink)) return GroupsOf(*aggregate, input);
  if (std::holds_alternative<FeedSink>(pipeline.sink)) return BadPlan("rows that another pipeline leaves");
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
      // A right or full join also emits rows without a source row.
      const bool invents = probe->kind == JoinKind::kRight || probe->kind == JoinKind::kFull;
      if (invents || slot >= probe->keep.size()) return std::nullopt;
      slot = probe->keep[slot];
    } else if (slot >= pipeline.schemas[s - 1].size()) {
      return std::nullopt;  // a key of grouping sets, which is NULL in some of the rows, or a series
    }
  }
  return slot;
}

const TableScan* ScanOf(const Pipeline& pipeline) {
  if (const auto* blocks = std::get_if<BlockScan>(&pipeline.source)) return blocks;
  return std::get_if<RecordScan>(&pipeline.source);
}

}  // namespace nam::plan
