#include "plan/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "plan/check_graph.h"
#include "plan/flow.h"
#include "plan/plan_error.h"
#include "plan/slot_of.h"

namespace nam::plan {
namespace {

/// A cube of 12 keys has as many, which is PostgreSQL's bound.
constexpr size_t kMostSets = 4096;

absl::Status CheckSlot(const Slot& slot) {
  if (!IsValueType(slot.type)) return BadPlan("a slot of a type without values");
  const bool any = slot.bounds.low != 0 || slot.bounds.high != 0 || slot.bounds.known;
  if (any && !HasBounds(slot.type)) return BadPlan("bounds of something that has none");
  if (slot.bounds.low > slot.bounds.high || (any && !slot.bounds.known))
    return BadPlan("bounds that hold nothing");
  return absl::OkStatus();
}

absl::Status CheckConditions(std::span<const Expr> conditions, const Schema& input) {
  for (const Expr& condition : conditions) {
    NAM_ASSIGN_OR_RETURN(const Slot slot, SlotOf(condition, input));
    if (slot.type.kind != TypeKind::kBool) return BadPlan("a condition that is no boolean");
  }
  return absl::OkStatus();
}

/// Checks types of keys: equal values have equal bytes, and their order is that of their numbers. Packed
/// values have neither property.
absl::Status CheckKey(const Type& type) {
  return !type.packed() ? absl::OkStatus() : BadPlan("a key of intervals or numerics");
}

absl::Status CheckKeys(std::span<const Expr> keys, const Schema& input) {
  for (const Expr& key : keys) {
    NAM_ASSIGN_OR_RETURN(const Slot slot, SlotOf(key, input));
    NAM_RETURN_IF_ERROR(CheckKey(slot.type));
  }
  return absl::OkStatus();
}

absl::Status CheckKeySlots(std::span<const uint32_t> slots, const Schema& input) {
  for (const uint32_t slot : slots) {
    if (slot >= input.size()) return BadPlan("a slot that is not there");
    NAM_RETURN_IF_ERROR(CheckKey(input[slot].type));
  }
  return absl::OkStatus();
}

absl::Status CheckAscending(std::span<const uint32_t> numbers, const char* what) {
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] <= numbers[i - 1]) return BadPlan(what);
  }
  return absl::OkStatus();
}

bool ComparesValues(const Aggregate& aggregate) {
  return IsDistinct(aggregate) || aggregate.function == AggregateFunction::kMin ||
         aggregate.function == AggregateFunction::kMax;
}

/// Whether equal values of both have equal hashes and bytes.
bool Comparable(const Type& a, const Type& b) {
  return a.scale == b.scale && (a.kind == b.kind || (a.numeric() && b.numeric()));
}

/// Whether `slot` fits a state of slot `wanted`.
bool FitsState(const Slot& wanted, const Slot& slot) {
  if (slot.type != wanted.type || (slot.nullable && !wanted.nullable)) return false;
  return !wanted.bounds.known || (slot.bounds.known && slot.bounds.low >= wanted.bounds.low &&
                                  slot.bounds.high <= wanted.bounds.high);
}

/// Checks a merge of states: its input is as StatesOf says.
absl::Status CheckMerge(const AggregateSink& sink, const Schema& input) {
  if (sink.group_by.size() > input.size()) return BadPlan("groups of states that are not there");
  for (size_t k = 0; k < sink.group_by.size(); ++k) {
    if (BareSlot(sink.group_by[k]) != k) return BadPlan("states are grouped by their keys as they are");
  }
  Schema arguments;
  for (const Aggregate& aggregate : sink.aggregates) {
    for (const Expr* argument : {&aggregate.argument, &aggregate.second}) {
      if (argument->op != Op::kLiteral || !argument->literal.null)
        return BadPlan("an aggregate of states computes its argument");
    }
    arguments.push_back({aggregate.argument.type, true, {}});
  }
  const Schema wanted = StatesOf(std::span(input).first(sink.group_by.size()), sink.aggregates, arguments);
  if (wanted.size() != input.size()) return BadPlan("states of other aggregates");
  for (size_t i = 0; i < input.size(); ++i) {
    if (!FitsState(wanted[i], input[i])) return BadPlan("states of other aggregates");
  }
  return absl::OkStatus();
}

/// Checks groups that exist without rows: their keys are values of the keys' slots.
absl::Status CheckTotals(const AggregateSink& sink, const Schema& input) {
  using Phase = AggregateSink::Phase;
  if (sink.totals.empty()) return absl::OkStatus();
  if (sink.phase != Phase::kFinal && sink.phase != Phase::kWhole)
    return BadPlan("totals of what is no result");
  if (sink.group_by.empty()) return BadPlan("totals of an aggregation without keys");
  NAM_RETURN_IF_ERROR(CheckAscending(sink.totals, "totals that do not ascend"));
  for (size_t k = 0; k < sink.group_by.size(); ++k) {
    NAM_ASSIGN_OR_RETURN(const Slot key, SlotOf(sink.group_by[k], input));
    if (k > 0 && !key.nullable) return BadPlan("totals whose keys are never NULL");
    if (k > 0) continue;
    if (key.type != Type::Integer() || !key.bounds.known || sink.totals.front() < key.bounds.low ||
        sink.totals.back() > key.bounds.high) {
      return BadPlan("totals that are no values of the first key");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const AggregateSink& sink, const Schema& input) {
  using Phase = AggregateSink::Phase;
  NAM_RETURN_IF_ERROR(CheckKeys(sink.group_by, input));
  for (const Aggregate& aggregate : sink.aggregates) {
    NAM_RETURN_IF_ERROR(CheckAggregate(aggregate));
    if (ComparesValues(aggregate)) NAM_RETURN_IF_ERROR(CheckKey(aggregate.argument.type));
    const size_t arguments = ArgumentsOf(aggregate.function);
    if (arguments > 0) NAM_RETURN_IF_ERROR(SlotOf(aggregate.argument, input).status());
    if (arguments > 1) NAM_RETURN_IF_ERROR(SlotOf(aggregate.second, input).status());
  }
  NAM_RETURN_IF_ERROR(CheckTotals(sink, input));
  if (sink.parts > kMostParts || (sink.parts > 0 && !GoesByParts(sink)))
    return BadPlan("parts of what has no states by keys, or too many");
  const bool states = sink.phase == Phase::kMerge || sink.phase == Phase::kFinal;
  return states ? CheckMerge(sink, input) : absl::OkStatus();
}

/// Runs hold all rows of an order.
absl::Status CheckRuns(Runs runs, std::span<const Order> order, int64_t limit) {
  if (runs == Runs::kNever || (!order.empty() && limit < 0)) return absl::OkStatus();
  return BadPlan("runs of rows without an order, or of some of them");
}

/// Checks pipelines in their order, so that the inputs of each are checked already.
class PlanChecker {
 public:
  explicit PlanChecker(const PhysicalPlan& plan) : plan_(plan) {}

  absl::Status Run() {
    if (plan_.pipelines.empty() || plan_.pipelines.size() > kMostPipelines)
      return BadPlan("no pipelines, or too many");
    for (number_ = 0; number_ < plan_.pipelines.size(); ++number_) {
      NAM_RETURN_IF_ERROR(CheckPipeline(plan_.pipelines[number_]));
    }
    return CheckGraph(plan_);
  }

 private:
  absl::Status CheckPipeline(const Pipeline& p) {
    if (p.schemas.size() != p.steps.size() + 1 || p.estimates.size() != p.schemas.size())
      return BadPlan("schemas and steps do not match");
    for (const Estimate& estimate : p.estimates) {
      if (!(std::isfinite(estimate.rows) && estimate.rows >= 0 && std::isfinite(estimate.selectivity) &&
            estimate.selectivity >= 0)) {
        return BadPlan("an estimate that is no number of rows");
      }
    }
    NAM_RETURN_IF_ERROR(CheckAfter(p));
    for (const Slot& slot : p.schemas[0]) NAM_RETURN_IF_ERROR(CheckSlot(slot));
    NAM_RETURN_IF_ERROR(std::visit([&](const auto& source) { return CheckSource(p, source); }, p.source));
    for (size_t s = 0; s < p.steps.size(); ++s) {
      const Schema& input = p.schemas[s];
      NAM_RETURN_IF_ERROR(
          std::visit([&](const auto& step) { return CheckStep(p, step, input); }, p.steps[s]));
      NAM_ASSIGN_OR_RETURN(const Schema output, StepOutput(plan_, p.steps[s], input));
      if (output != p.schemas[s + 1]) return BadPlan("a schema that is not what flows");
    }
    if (const auto* feed = std::get_if<FeedSink>(&p.sink)) return CheckFeed(p, *feed);
    return std::visit([&](const auto& sink) { return CheckSink(sink, p.schemas.back()); }, p.sink);
  }

  absl::Status CheckAfter(const Pipeline& p) const {
    NAM_RETURN_IF_ERROR(CheckAscending(p.after, "pipelines to wait for that do not ascend"));
    if (p.stage >= plan_.stages.size()) return BadPlan("a pipeline of no stage");
    for (const uint32_t before : p.after) {
      if (before >= number_) return BadPlan("a pipeline that waits for a later one");
      if (plan_.pipelines[before].stage > p.stage) return BadPlan("a pipeline that waits for a later stage");
    }
    return absl::OkStatus();
  }

  /// Whether `of` is complete when the pipeline starts.
  static bool Waits(const Pipeline& p, uint32_t of) {
    for (const uint32_t before : p.after) {
      if (before == of) return true;
    }
    return false;
  }

  // ─── Sources

  absl::Status CheckScan(const Pipeline& p, const TableScan& scan, bool records) const {
    if (scan.table >= plan_.tables.size()) return BadPlan("a scan of no table");
    if (plan_.tables[scan.table].records != records) return BadPlan("a scan of another kind than its table");
    NAM_RETURN_IF_ERROR(CheckAscending(scan.columns, "columns that do not ascend"));
    if (scan.slots.size() != scan.columns.size()) return BadPlan("columns and their slots do not match");
    for (const Slot& slot : scan.slots) NAM_RETURN_IF_ERROR(CheckSlot(slot));
    NAM_RETURN_IF_ERROR(CheckConditions(scan.filters, scan.slots));
    NAM_ASSIGN_OR_RETURN(const Schema output, ScanOutput(scan));
    return output == p.schemas[0] ? absl::OkStatus() : BadPlan("a schema that is not what flows");
  }

  absl::Status CheckSource(const Pipeline& p, const BlockScan& scan) const {
    if (scan.co_partitioned_key < -1) return BadPlan("a partition key that is not there");
    return CheckScan(p, scan, false);
  }

  absl::Status CheckSource(const Pipeline& p, const RecordScan& scan) const {
    if (scan.range_low.size() != scan.range_high.size()) return BadPlan("a range with one end");
    return CheckScan(p, scan, true);
  }

  absl::Status CheckSource(const Pipeline& p, const ValuesSource& values) const {
    const Schema& slots = p.schemas[0];
    for (const std::vector<Value>& row : values.rows) {
      if (row.size() != slots.size()) return BadPlan("a row of another number of values");
      for (size_t i = 0; i < row.size(); ++i) {
        const Bounds& bounds = slots[i].bounds;
        if (!IsValueOf(row[i], slots[i].type)) return BadPlan("a value of another type");
        if (row[i].null && !slots[i].nullable) return BadPlan("a NULL where there is none");
        if (!row[i].null && bounds.known && (row[i].number < bounds.low || row[i].number > bounds.high))
          return BadPlan("a value out of its bounds");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSource(const Pipeline& p, const FileSource& source) const {
    if (plan_.stages[p.stage].site != Stage::Site::kSession)
      return BadPlan("files of the session's host in a stage of servers");
    NAM_RETURN_IF_ERROR(CheckAscending(source.columns, "columns that do not ascend"));
    if (source.columns.size() != p.schemas[0].size() || source.column_names.size() != source.columns.size())
      return BadPlan("columns and their slots do not match");
    return absl::OkStatus();
  }

  absl::Status CheckSource(const Pipeline& p, const PageSource& source) const {
    if (!Waits(p, source.pipeline)) return BadPlan("rows of a pipeline that is not complete");
    const Pipeline& from = plan_.pipelines[source.pipeline];
    if (std::holds_alternative<BuildSink>(from.sink) || std::holds_alternative<ExchangeSend>(from.sink) ||
        std::holds_alternative<FeedSink>(from.sink) || std::holds_alternative<PartitionSink>(from.sink)) {
      return BadPlan("rows of a pipeline that leaves none");
    }
    if (source.in_order && !std::holds_alternative<SortSink>(from.sink))
      return BadPlan("an order that there is not");
    if (LeavesStates(from) && !MergesStates(p)) return BadPlan("states of groups that are read as rows");
    if (!MergesRuns(p, from)) return BadPlan("sorted runs that are read by something else than a sort");
    NAM_ASSIGN_OR_RETURN(const Schema left, SinkOutput(from));
    return left == p.schemas[0] ? absl::OkStatus() : BadPlan("a schema that is not what flows");
  }

  static bool LeavesStates(const Pipeline& p) {
    const auto* sink = std::get_if<AggregateSink>(&p.sink);
    return sink != nullptr &&
           (sink->phase == AggregateSink::Phase::kPartial || sink->phase == AggregateSink::Phase::kMerge);
  }
  static bool MergesStates(const Pipeline& p) {
    const auto* sink = std::get_if<AggregateSink>(&p.sink);
    return p.steps.empty() && sink != nullptr &&
           (sink->phase == AggregateSink::Phase::kMerge || sink->phase == AggregateSink::Phase::kFinal);
  }

  /// Runs of servers are in the requested order.
  static bool MergesRuns(const Pipeline& p, const Pipeline& from) {
    const auto* left = std::get_if<ResultSink>(&from.sink);
    if (left == nullptr || left->runs == Runs::kNever) return true;
    const auto* sort = std::get_if<SortSink>(&p.sink);
    return p.steps.empty() && sort != nullptr && sort->runs != Runs::kNever && sort->order == left->order;
  }

  absl::Status CheckSource(const Pipeline& p, const PartitionSource& source) const {
    if (!Waits(p, source.pipeline)) return BadPlan("parts of a pipeline that is not complete");
    const Pipeline& from = plan_.pipelines[source.pipeline];
    if (from.stage >= p.stage) return BadPlan("parts of no earlier stage");
    const auto* groups = std::get_if<AggregateSink>(&from.sink);
    const bool by_parts =
        groups != nullptr ? groups->parts > 0 : std::holds_alternative<PartitionSink>(from.sink);
    if (!by_parts) return BadPlan("parts of a pipeline that leaves none");
    if (source.merge.has_value() != (groups != nullptr))
      return BadPlan("parts that are read as something else");
    if (groups == nullptr && std::get<PartitionSink>(from.sink).counts_nulls)
      return BadPlan("rows of parts some of which are counted alone");
    if (source.merge.has_value()) {
      if (source.merge->phase != AggregateSink::Phase::kFinal || !source.merge->totals.empty())
        return BadPlan("a merge by parts that makes no groups");
      NAM_ASSIGN_OR_RETURN(const Schema states, SinkOutput(from));
      NAM_RETURN_IF_ERROR(CheckGroups(*source.merge, states));
    }
    NAM_ASSIGN_OR_RETURN(const Schema output, PartitionOutput(plan_, source));
    return output == p.schemas[0] ? absl::OkStatus() : BadPlan("a schema that is not what flows");
  }

  /// Checks a side of a join by parts: rows by the parts of these keys.
  absl::StatusOr<const PartitionSink*> CheckSide(const Pipeline& p, uint32_t number,
                                                 std::span<const Expr> keys) const {
    if (!Waits(p, number)) return BadPlan("parts of a pipeline that is not complete");
    const Pipeline& from = plan_.pipelines[number];
    if (from.stage >= p.stage) return BadPlan("parts of no earlier stage");
    const auto* sink = std::get_if<PartitionSink>(&from.sink);
    if (sink == nullptr) return BadPlan("a join of what does not lie by parts");
    if (keys.empty() || keys.size() != sink->keys.size())
      return BadPlan("a join by other keys than its parts");
    for (size_t k = 0; k < keys.size(); ++k) {
      if (BareSlot(keys[k]) != sink->keys[k]) return BadPlan("a join by other keys than its parts");
    }
    return sink;
  }

  absl::Status CheckSource(const Pipeline& p, const JoinSource& join) const {
    NAM_ASSIGN_OR_RETURN(const PartitionSink* probed, CheckSide(p, join.probed, join.probe.keys));
    NAM_ASSIGN_OR_RETURN(const PartitionSink* built, CheckSide(p, join.probe.build, join.build.keys));
    if (join.probed == join.probe.build || probed->parts != built->parts)
      return BadPlan("a join of parts that are no others, or not as many");
    if (probed->keys.size() != built->keys.size()) return BadPlan("a probe with another number of keys");
    NAM_ASSIGN_OR_RETURN(const JoinSchemas schemas, SchemasOf(plan_, join));
    if (join.build.unique) return BadPlan("unique keys of a join by parts");
    if (probed->domain != built->domain) return BadPlan("a join of parts by other domains");
    if (built->domain.known()) {
      const Bounds& keys = schemas.built[built->keys[0]].bounds;
      if (keys.low < built->domain.low || keys.high - built->domain.low >= __int128{1} << built->domain.bits)
        return BadPlan("keys outside of their domain");
    }
    NAM_RETURN_IF_ERROR(CheckSink(join.build, schemas.built));
    for (size_t k = 0; k < join.probe.keys.size(); ++k) {
      NAM_ASSIGN_OR_RETURN(const Slot a, SlotOf(join.probe.keys[k], schemas.probed));
      NAM_ASSIGN_OR_RETURN(const Slot b, SlotOf(join.build.keys[k], schemas.built));
      if (!Comparable(a.type, b.type)) return BadPlan("keys that are not comparable");
    }
    NAM_RETURN_IF_ERROR(CheckConditions(join.probe.residuals, schemas.partners));
    NAM_RETURN_IF_ERROR(CheckConditions(join.probe.compared, schemas.partners));
    NAM_RETURN_IF_ERROR(CheckNullAware(join.probe));
    // Rows that are only counted have no partners, and only the build side's count matters.
    if (probed->counts_nulls) return BadPlan("a probe side some of whose rows are counted alone");
    if (built->counts_nulls != AsksForNulls(join.probe))
      return BadPlan("a join by parts that asks for other facts of its whole build side than are known");
    return schemas.output == p.schemas[0] ? absl::OkStatus() : BadPlan("a schema that is not what flows");
  }

  absl::Status CheckSource(const Pipeline& p, const WindowSource& source) const {
    if (!Waits(p, source.pipeline)) return BadPlan("rows of a pipeline that is not complete");
    const Pipeline& from = plan_.pipelines[source.pipeline];
    const auto* sort = std::get_if<SortSink>(&from.sink);
    if (sort != nullptr && (sort->limit >= 0 || sort->offset > 0))
      return BadPlan("a window over some of the rows");
    if (from.stage != p.stage) return BadPlan("a window over another stage's memory");
    NAM_ASSIGN_OR_RETURN(const Schema output, WindowOutput(plan_, source));
    return output == p.schemas[0] ? absl::OkStatus() : BadPlan("a schema that is not what flows");
  }

  absl::Status CheckSource(const Pipeline& p, const ExchangeReceive& source) const {
    bool sent = false;
    for (uint32_t other = 0; other < plan_.pipelines.size(); ++other) {
      const Pipeline& from = plan_.pipelines[other];
      const auto* send = std::get_if<ExchangeSend>(&from.sink);
      if (send == nullptr || send->exchange != source.exchange) continue;
      if (other >= number_ || from.stage != p.stage)
        return BadPlan("an exchange that is received before it is sent");
      if (from.schemas.back() != p.schemas[0]) return BadPlan("a schema that is not what flows");
      if (send->filtered_by.has_value() && !DropsWithoutPartner(p, *send))
        return BadPlan("rows that a filter drops and their receiver does not");
      sent = true;
    }
    return sent ? absl::OkStatus() : BadPlan("an exchange without a sender");
  }

  /// Whether rows without a partner in the build side, by the keys that they are sent by, are dropped.
  static bool DropsWithoutPartner(const Pipeline& p, const ExchangeSend& send) {
    const auto* probe = p.steps.empty() ? nullptr : std::get_if<ProbeStep>(&p.steps[0]);
    const auto same = [](const Expr& key, uint32_t slot) { return BareSlot(key) == slot; };
    constexpr JoinKind kDrop[] = {JoinKind::kInner, JoinKind::kSemi, JoinKind::kRight};
    return probe != nullptr && probe->build == *send.filtered_by && !send.keys.empty() &&
           std::ranges::equal(probe->keys, send.keys, same) && std::ranges::count(kDrop, probe->kind) > 0;
  }

  // ─── Steps

  absl::Status CheckStep(const Pipeline&, const FilterStep& filter, const Schema& input) const {
    return CheckConditions(filter.conditions, input);
  }

  /// StepOutput checks every output.
  absl::Status CheckStep(const Pipeline&, const ProjectStep&, const Schema&) const {
    return absl::OkStatus();
  }

  absl::Status CheckStep(const Pipeline&, const LimitStep& limit, const Schema& input) const {
    if (limit.rows < -1 || limit.offset < 0) return BadPlan("a negative limit");
    if (limit.rows < 0 && !limit.ties.empty()) return BadPlan("rows like the last one of all");
    return CheckKeySlots(limit.ties, input);
  }

  /// StepOutput checks the expressions.
  absl::Status CheckStep(const Pipeline&, const SeriesStep&, const Schema&) const { return absl::OkStatus(); }

  absl::Status CheckStep(const Pipeline& p, const ProbeStep& probe, const Schema& input) const {
    if (!Waits(p, probe.build)) return BadPlan("a probe of a pipeline that is not complete");
    const Pipeline& built = plan_.pipelines[probe.build];
    const auto* build = std::get_if<BuildSink>(&built.sink);
    if (build == nullptr) return BadPlan("a probe of a pipeline that builds nothing");
    if (built.stage != p.stage) return BadPlan("a probe of another stage's memory");
    if (probe.keys.size() != build->keys.size()) return BadPlan("a probe with another number of keys");
    for (size_t k = 0; k < probe.keys.size(); ++k) {
      NAM_ASSIGN_OR_RETURN(const Slot key, SlotOf(probe.keys[k], input));
      if (!Comparable(key.type, build->keys[k].type)) return BadPlan("keys that are not comparable");
    }
    NAM_ASSIGN_OR_RETURN(const Schema partners, PartnerSchema(plan_, probe, input));
    NAM_RETURN_IF_ERROR(CheckConditions(probe.residuals, partners));
    NAM_RETURN_IF_ERROR(CheckConditions(probe.compared, partners));
    return CheckNullAware(probe);
  }

  /// Checks that the treatment of NULLs is stated in one way.
  static absl::Status CheckNullAware(const ProbeStep& probe) {
    const bool mark = probe.kind == JoinKind::kMark, anti = probe.kind == JoinKind::kNullAwareAnti;
    if (!probe.compared.empty() && !mark && !anti) return BadPlan("a probe that compares for no mark");
    if (probe.null_aware && !mark) return BadPlan("only marks are of IN or of EXISTS");
    if (AsksForNulls(probe) &&
        (probe.keys.size() != 1 || !probe.residuals.empty() || !probe.compared.empty()))
      return BadPlan("IN by something else than one key alone");
    return absl::OkStatus();
  }

  absl::Status CheckStep(const Pipeline&, const ExpandStep& expand, const Schema& input) const {
    if (expand.sets.empty() || expand.sets.size() > kMostSets)
      return BadPlan("no grouping sets, or too many");
    NAM_RETURN_IF_ERROR(CheckSlots(expand.keys, input));
    for (const std::vector<uint32_t>& set : expand.sets) {
      NAM_RETURN_IF_ERROR(CheckAscending(set, "a grouping set that does not ascend"));
      if (!set.empty() && set.back() >= expand.keys.size())
        return BadPlan("a grouping set of a key that is not there");
    }
    return absl::OkStatus();
  }

  absl::Status CheckStep(const Pipeline&, const RepeatStep& repeat, const Schema& input) const {
    if (repeat.times >= input.size()) return BadPlan("a slot that is not there");
    return input[repeat.times].type.kind == TypeKind::kInteger ? absl::OkStatus()
                                                               : BadPlan("a row as often as no integer");
  }

  // ─── Sinks

  absl::Status CheckSink(const BuildSink& sink, const Schema& input) const {
    if (sink.unique && sink.keys.size() != 1) return BadPlan("a build without its key");
    NAM_RETURN_IF_ERROR(CheckKeys(sink.keys, input));
    NAM_RETURN_IF_ERROR(CheckAscending(sink.payload, "a payload that does not ascend"));
    return CheckSlots(sink.payload, input);
  }

  absl::Status CheckSink(const AggregateSink& sink, const Schema& input) const {
    return CheckGroups(sink, input);
  }

  absl::Status CheckSink(const ResultSink& sink, const Schema& input) const {
    if (sink.limit < -1) return BadPlan("a negative limit");
    for (const Order& order : sink.order) {
      if (order.slot >= input.size()) return BadPlan("an order by a slot that is not there");
      NAM_RETURN_IF_ERROR(CheckKey(input[order.slot].type));
    }
    return CheckRuns(sink.runs, sink.order, sink.limit);
  }

  absl::Status CheckSink(const ExchangeSend& sink, const Schema& input) const {
    NAM_RETURN_IF_ERROR(CheckKeySlots(sink.keys, input));
    if (!sink.filtered_by.has_value()) return absl::OkStatus();
    const Pipeline& p = plan_.pipelines[number_];
    if (!Waits(p, *sink.filtered_by)) return BadPlan("a filter of a pipeline that is not complete");
    const Pipeline& built = plan_.pipelines[*sink.filtered_by];
    const bool receives = std::holds_alternative<ExchangeReceive>(built.source) && built.stage == p.stage;
    return receives ? absl::OkStatus() : BadPlan("a filter of what builds nothing that it receives");
  }

  absl::Status CheckSink(const PartitionSink& sink, const Schema& input) const {
    if (sink.parts == 0 || sink.parts > kMostParts) return BadPlan("no parts, or too many");
    NAM_RETURN_IF_ERROR(CheckKeySlots(sink.keys, input));
    return sink.domain.known() ? CheckDomain(sink, input) : absl::OkStatus();
  }

  absl::Status CheckDomain(const PartitionSink& sink, const Schema& input) const {
    if (sink.domain.bits > KeyDomain::kBitsMax || !std::has_single_bit(sink.parts) ||
        sink.parts > sink.domain.size())
      return BadPlan("a domain of keys that is too large, or not of its parts");
    if (sink.keys.size() != 1) return BadPlan("a domain of several keys");
    const Slot& key = input[sink.keys[0]];
    if (PhysicalOf(key.type) == Physical::kText || PhysicalOf(key.type) == Physical::kTruth ||
        !key.bounds.narrow())
      return BadPlan("a domain of keys that are no numbers");
    return absl::OkStatus();
  }

  absl::Status CheckSink(const SortSink& sink, const Schema& input) const {
    if (sink.limit < -1 || sink.offset < 0) return BadPlan("a negative limit");
    for (const Order& order : sink.order) {
      if (order.slot >= input.size()) return BadPlan("an order by a slot that is not there");
      NAM_RETURN_IF_ERROR(CheckKey(input[order.slot].type));
    }
    if (sink.runs != Runs::kNever && sink.offset > 0) return BadPlan("runs behind rows that are left out");
    return CheckRuns(sink.runs, sink.order, sink.limit);
  }

  absl::Status CheckSink(const FeedSink&, const Schema&) const { return BadPlan("a sink that was checked"); }

  /// The later pipeline is not checked yet; its own check covers its schemas.
  absl::Status CheckFeed(const Pipeline& p, const FeedSink& feed) const {
    if (feed.pipeline <= number_ || feed.pipeline >= plan_.pipelines.size())
      return BadPlan("rows for a pipeline that is not there");
    const Pipeline& to = plan_.pipelines[feed.pipeline];
    if (to.stage != p.stage) return BadPlan("rows for another stage's memory");
    if (!Waits(to, number_)) return BadPlan("rows for a pipeline that does not wait for them");
    if (std::holds_alternative<FeedSink>(to.sink) || std::holds_alternative<ExchangeSend>(to.sink))
      return BadPlan("rows for a pipeline that leaves none");
    if (to.schemas.empty() || to.schemas.back().size() != p.schemas.back().size())
      return BadPlan("rows of another schema than their sink's");
    for (size_t i = 0; i < p.schemas.back().size(); ++i) {
      if (!FitsState(to.schemas.back()[i], p.schemas.back()[i]))
        return BadPlan("rows of another schema than their sink's");
    }
    return absl::OkStatus();
  }

  const PhysicalPlan& plan_;
  uint32_t number_ = 0;  // the pipeline under check
};

}  // namespace

absl::Status Check(const PhysicalPlan& plan) {
  return PlanChecker(plan).Run();
}

}  // namespace nam::plan
