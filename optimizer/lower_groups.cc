#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/tree_lowering.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/slot_of.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::AggregateAlgorithm;
using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::Op;
using Phase = plan::AggregateSink::Phase;

namespace {

/// Up to so many groups of an attempt go directly to the session, as do those of rows expected to be
/// kGuessesAreOff times fewer.
constexpr double kFewGroups = 10'000;
constexpr double kGroupsOfAPart = 16'384;
constexpr uint32_t kFewestParts = 64;
constexpr uint32_t kMostGroupParts = 1024;

Expr NullOf(const Type& type) {
  return plan::MakeLiteral(Value::Null(type), -1);
}

/// Merges what servers have left of an aggregation.
plan::AggregateSink MergeOf(const plan::AggregateSink& partial, const plan::Schema& states) {
  plan::AggregateSink merge{.group_by = plan::SlotExprs(states),
                            .aggregates = partial.aggregates,
                            .phase = Phase::kFinal,
                            .totals = partial.totals};
  merge.group_by.resize(partial.group_by.size());
  for (plan::Aggregate& aggregate : merge.aggregates) {
    aggregate.argument = NullOf(aggregate.argument.type);
    aggregate.second = NullOf(aggregate.second.type);
  }
  return merge;
}

absl::StatusOr<plan::Aggregate> AggregateOf(const lg::AggregateCall& call) {
  plan::Aggregate out{
      .function = call.function, .argument = call.argument, .type = call.type, .second = call.second};
  if (call.function == AggregateFunction::kCountRows) out.argument = Expr();
  if (call.filter.has_value()) {
    if (call.function == AggregateFunction::kCountRows) {
      out.function = AggregateFunction::kCount;
      out.argument = plan::MakeLiteral(Value::Bool(true), -1);
    }
    out.argument = Where(*call.filter, std::move(out.argument));
    if (!plan::IsConstant(out.second)) out.second = Where(*call.filter, std::move(out.second));
  }
  if (call.distinct && !plan::IgnoresRepeats(call.function)) {
    if (call.function == AggregateFunction::kCount) {
      out.function = AggregateFunction::kCountDistinct;
    } else {
      out.distinct = true;
    }
  }
  return out;
}

/// Whether every aggregate takes each value of its argument once, or could.
bool IsOfDistinctValues(const std::vector<plan::Aggregate>& aggregates) {
  return std::any_of(aggregates.begin(), aggregates.end(), plan::IsDistinct) &&
         std::all_of(aggregates.begin(), aggregates.end(), [&](const plan::Aggregate& aggregate) {
           return plan::ArgumentsOf(aggregate.function) == 1 &&
                  (plan::IsDistinct(aggregate) || plan::IgnoresRepeats(aggregate.function));
         });
}

/// The arguments whose values aggregates take once each.
std::vector<Expr> DistinctArguments(const std::vector<plan::Aggregate>& aggregates) {
  std::vector<Expr> out;
  for (const plan::Aggregate& aggregate : aggregates) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const Expr& argument) {
      return plan::SameExpr(argument, aggregate.argument);
    });
    if (plan::IsDistinct(aggregate) && !known) out.push_back(aggregate.argument);
  }
  return out;
}

/// The same aggregate over distinct values.
plan::Aggregate OverSingleValues(plan::Aggregate aggregate, Expr argument) {
  if (aggregate.function == AggregateFunction::kCountDistinct) aggregate.function = AggregateFunction::kCount;
  aggregate.distinct = false;
  aggregate.argument = std::move(argument);
  return aggregate;
}

/// CASE number WHEN 0 THEN values[0] … over a grouping set's number.
Expr BySet(const Expr& number, const std::vector<int64_t>& values) {
  Expr out = plan::MakeNode(Op::kCase, Type::Integer(), -1, {});
  for (size_t set = 0; set + 1 < values.size(); ++set) {
    out.children.push_back(
        plan::MakeNode(Op::kEqual, Type::Bool(), -1,
                       {number, plan::MakeLiteral(Value::Integer(static_cast<int64_t>(set)), -1)}));
    out.children.push_back(plan::MakeLiteral(Value::Integer(values[set]), -1));
  }
  out.children.push_back(plan::MakeLiteral(Value::Integer(values.back()), -1));
  return out.children.size() == 1 ? out.children[0] : out;
}

/// The bits of GROUPING(…) for a set.
int64_t GroupingOf(const lg::GroupingCall& call, const std::vector<uint32_t>& set) {
  int64_t bits = 0;
  for (const uint32_t key : call.keys)
    bits = 2 * bits + (std::find(set.begin(), set.end(), key) == set.end() ? 1 : 0);
  return bits;
}

}  // namespace

double RowsMost(const Flow& flow, const TableRefs& tables) {
  double rows = 0;
  if (const plan::TableScan* scan = plan::ScanOf(flow.pipeline); scan != nullptr)
    rows = static_cast<double>(tables[scan->table]->rows());
  for (const plan::Estimate& estimate : flow.pipeline.estimates) rows = std::max(rows, estimate.rows);
  // No table tells their number.
  const bool joined = std::holds_alternative<plan::JoinSource>(flow.pipeline.source) ||
                      std::holds_alternative<plan::ExchangeReceive>(flow.pipeline.source);
  return joined ? rows * kGuessesAreOff : rows;
}

namespace {

/// The number of parts with about kGroupsOfAPart groups each.
uint32_t PartsFor(double groups) {
  const double wanted = std::clamp<double>(groups / kGroupsOfAPart, kFewestParts, kMostGroupParts);
  return std::bit_ceil(static_cast<uint32_t>(wanted));
}

}  // namespace

bool TreeLowering::MayBeMany(const Flow& flow, double groups_most) const {
  if (!flow.on_servers() || options_.aggregate == AggregateAlgorithm::kDist) return false;
  return options_.aggregate == AggregateAlgorithm::kRdma ||
         std::min({groups_most, RowsMost(flow, builder_.tables()), flow.rows() * kGuessesAreOff}) >
             kFewGroups;
}

GroupChoice TreeLowering::ChooseGroups(const Flow& flow, const plan::AggregateSink& partial,
                                       double groups_most, double groups) const {
  const double rows_most = RowsMost(flow, builder_.tables());
  const bool forced = options_.aggregate != AggregateAlgorithm::kAuto;
  GroupChoice choice{.why = forced ? Why::kForced : Why::kCheapest,
                     .costs = CostsOfGroups(flow.rows(), groups, flow.schema())};
  if (!plan::GoesByParts(partial)) {
    choice.why = Why::kOnly;
  } else if (!MayBeMany(flow, groups_most)) {
    if (!forced) choice.why = Why::kFew;
  } else {
    // An attempt with few groups leaves them as pages in any case. So the upper bound counts, and whether it
    // would fit the session. Lengths of texts are unknown.
    const double most = std::min(groups_most, rows_most);
    const GroupCosts costs = CostsOfGroups(rows_most, most, flow.schema());
    const bool fits =
        std::none_of(flow.schema().begin(), flow.schema().end(),
                     [](const plan::Slot& slot) { return PhysicalOf(slot.type) == Physical::kText; }) &&
        BytesOfRows(most, flow.schema()) <= static_cast<double>(options_.top_bytes_max);
    if (forced || !fits || costs.rdma_ms <= costs.dist_ms) choice.algorithm = AggregateAlgorithm::kRdma;
    if (!forced && !fits && costs.rdma_ms > costs.dist_ms) {
      choice.why = Why::kTooMany;
    } else if (!forced && (choice.algorithm == AggregateAlgorithm::kRdma) !=
                              (choice.costs.rdma_ms <= choice.costs.dist_ms)) {
      choice.why = Why::kCheapestOfMost;
    }
  }
  return choice;
}

absl::StatusOr<Flow> TreeLowering::Group(Flow flow, plan::AggregateSink sink, Layout layout,
                                         double groups_most) {
  for (const Expr& key : sink.group_by) NAM_RETURN_IF_ERROR(CheckKey(key.type));
  sink.phase = flow.on_servers() ? Phase::kPartial : Phase::kWhole;
  const double guess = std::isfinite(groups_most) ? groups_most : flow.rows() / kRowsOfAGroup;
  const double groups = std::max(1.0, std::min(guess, flow.rows()));
  if (!flow.on_servers()) {
    NAM_ASSIGN_OR_RETURN(Flow left, builder_.Through(std::move(flow), std::move(sink), std::move(layout)));
    left.pipeline.estimates[0].rows = groups;
    return left;
  }
  const double most = std::min(groups_most, RowsMost(flow, builder_.tables()));
  plan::AggregateSink partial = sink;
  partial.totals.clear();
  const bool always = options_.aggregate == AggregateAlgorithm::kRdma;
  GroupChoice choice = ChooseGroups(flow, partial, groups_most, groups);
  if (choice.algorithm == AggregateAlgorithm::kRdma) partial.parts = PartsFor(most);
  const bool keyed = !partial.group_by.empty();
  const uint32_t parts = partial.parts, stage = flow.pipeline.stage;
  const uint32_t number = choice.pipeline = builder_.Close(std::move(flow), std::move(partial));
  if (keyed) builder_.Note(choice);
  const StageFact left =
      End(stage, {.rows = groups, .by_parts = parts > 0 && (always || groups > kFewGroups)}, parts > 0);
  if (left.by_parts) return OpenParts(number, parts, sink, std::move(layout), left.rows);
  NAM_ASSIGN_OR_RETURN(const plan::Schema states, plan::SinkOutput(builder_.pipeline(number)));
  NAM_ASSIGN_OR_RETURN(Flow merging, builder_.Open(number, Flow::kSession, Layout(states.size())));
  merging.pipeline.estimates[0].rows = left.rows;
  return builder_.Through(std::move(merging), MergeOf(sink, states), std::move(layout));
}

absl::StatusOr<Flow> TreeLowering::OpenParts(uint32_t before, uint32_t parts, const plan::AggregateSink& sink,
                                             Layout layout, double rows) {
  NAM_ASSIGN_OR_RETURN(const plan::Schema states, plan::SinkOutput(builder_.pipeline(before)));
  plan::PartitionSource source{before, MergeOf(sink, states)};
  source.merge->totals.clear();  // rows have come, or there would be no parts
  NAM_ASSIGN_OR_RETURN(plan::Schema groups, plan::PartitionOutput(builder_.draft(), source));
  return Flow{.pipeline = {.source = std::move(source),
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(groups)},
                           .estimates = {{rows, 1}},
                           .after = {before},
                           .stage = builder_.AddStage({.parts = parts})},
              .layout = std::move(layout)};
}

absl::Status TreeLowering::MakeDistinct(const std::vector<Expr>& keys,
                                        const std::vector<plan::Aggregate>& calls, plan::AggregateSink& sink,
                                        Flow& flow) {
  const std::vector<Expr> arguments = DistinctArguments(calls);
  double rows_most = 0;
  for (const Expr& argument : arguments) {
    if (!CheckKey(argument.type).ok()) return absl::OkStatus();
    std::vector<Expr> pair = keys;
    pair.push_back(argument);
    rows_most += cardinalities_.ValuesOf(pair);
  }
  if (!MayBeMany(flow, rows_most)) return absl::OkStatus();
  plan::AggregateSink pairs{.group_by = sink.group_by};
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> slots, ExpandArguments(arguments, flow));
  for (const uint32_t slot : slots) pairs.group_by.push_back(plan::SlotExpr(flow.schema(), slot));
  // The places of aggregates' arguments. The least of least values is the least: aggregates that ignore
  // repeats work on both levels.
  std::vector<size_t> place;
  for (size_t i = 0; i < calls.size(); ++i) {
    size_t number = 0;
    while (number < arguments.size() && !plan::SameExpr(arguments[number], calls[i].argument)) ++number;
    if (number == arguments.size()) {
      number += pairs.aggregates.size();
      pairs.aggregates.push_back(sink.aggregates[i]);
    }
    place.push_back(keys.size() + number);
  }
  Layout layout;
  for (size_t i = 0; i < pairs.group_by.size() + pairs.aggregates.size(); ++i) layout.push_back(Unnamed());
  NAM_ASSIGN_OR_RETURN(flow, Group(std::move(flow), std::move(pairs), std::move(layout), rows_most));
  const std::vector<Expr> grouped = plan::SlotExprs(flow.schema());
  sink.group_by.assign(grouped.begin(), grouped.begin() + static_cast<ptrdiff_t>(keys.size()));
  for (size_t i = 0; i < sink.aggregates.size(); ++i)
    sink.aggregates[i] = OverSingleValues(std::move(sink.aggregates[i]), grouped[place[i]]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> TreeLowering::ExpandArguments(const std::vector<Expr>& arguments,
                                                                    Flow& flow) {
  NAM_ASSIGN_OR_RETURN(std::vector<uint32_t> slots, SlotsOf(arguments, flow));
  if (slots.size() == 1) return slots;
  plan::ExpandStep expand{.keys = slots, .sets = {}};
  Layout layout = flow.layout;
  for (uint32_t a = 0; a < slots.size(); ++a) {
    expand.sets.push_back({a});
    slots[a] = static_cast<uint32_t>(layout.size());
    layout.push_back(Unnamed());
  }
  layout.push_back(Unnamed());
  const double rows = flow.rows() * static_cast<double>(slots.size());
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(expand), std::move(layout), rows, flow));
  return slots;
}

absl::StatusOr<Flow> TreeLowering::LowerAggregate(const Node& node, const ColumnSet& needed) {
  (void)needed;
  const auto& aggregate = *node.As<lg::Aggregate>();
  std::vector<plan::Aggregate> calls;
  ColumnSet below;
  AddColumns(aggregate.keys, below);
  for (const lg::AggregateCall& call : aggregate.aggregates) {
    NAM_ASSIGN_OR_RETURN(calls.emplace_back(), AggregateOf(call));
    AddColumns(calls.back().argument, below);
    AddColumns(calls.back().second, below);
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  plan::AggregateSink sink;
  const std::vector<plan::Aggregate> over_columns = calls;
  for (plan::Aggregate& call : calls) {
    NAM_ASSIGN_OR_RETURN(call.argument, OverSlots(call.argument, flow.layout));
    NAM_ASSIGN_OR_RETURN(call.second, OverSlots(call.second, flow.layout));
    sink.aggregates.push_back(call);
  }
  const size_t keys = aggregate.keys.size();
  if (aggregate.sets.empty()) {
    NAM_ASSIGN_OR_RETURN(sink.group_by, OverSlots(aggregate.keys, flow.layout));
    if (IsOfDistinctValues(calls))
      NAM_RETURN_IF_ERROR(MakeDistinct(aggregate.keys, over_columns, sink, flow));
    Layout layout = LayoutOf(node.columns);
    layout.resize(keys + calls.size());
    NAM_ASSIGN_OR_RETURN(flow, Group(std::move(flow), std::move(sink), std::move(layout),
                                     cardinalities_.ValuesOf(aggregate.keys)));
    if (aggregate.groupings.empty()) return flow;
    plan::ProjectStep project{plan::SlotExprs(flow.schema())};
    for (size_t g = 0; g < aggregate.groupings.size(); ++g)
      project.outputs.push_back(plan::MakeLiteral(Value::Integer(0), -1));
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), LayoutOf(node.columns), flow.rows(), flow));
    return flow;
  }
  // Each row once for each set: its keys, NULL where the set lacks them, and the set's number come first.
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> slots, SlotsOf(aggregate.keys, flow));
  plan::ExpandStep expand{.keys = slots, .sets = aggregate.sets};
  for (std::vector<uint32_t>& set : expand.sets) std::sort(set.begin(), set.end());
  Layout expanded = flow.layout;
  const auto first = static_cast<uint32_t>(expanded.size());
  for (size_t i = 0; i <= keys; ++i) expanded.push_back(Unnamed());
  const double rows = flow.rows() * static_cast<double>(aggregate.sets.size());
  NAM_RETURN_IF_ERROR(builder_.Append(expand, std::move(expanded), rows, flow));
  const auto number = first + static_cast<uint32_t>(keys);
  sink.group_by.push_back(plan::SlotExpr(flow.schema(), number));
  for (uint32_t k = 0; k < keys; ++k) sink.group_by.push_back(plan::SlotExpr(flow.schema(), first + k));
  for (uint32_t s = 0; s < expand.sets.size(); ++s) {
    if (expand.sets[s].empty()) sink.totals.push_back(s);
  }
  Layout layout = LayoutOf(node.columns);
  layout.resize(keys + calls.size());
  layout.insert(layout.begin(), Unnamed());
  double groups_most = 0;
  for (const std::vector<uint32_t>& set : expand.sets) {
    std::vector<Expr> of_set;
    for (const uint32_t key : set) of_set.push_back(aggregate.keys[key]);
    groups_most += cardinalities_.ValuesOf(of_set);
  }
  NAM_ASSIGN_OR_RETURN(flow, Group(std::move(flow), std::move(sink), std::move(layout), groups_most));
  plan::ProjectStep project{plan::SlotExprs(flow.schema())};
  const Expr set_number = project.outputs.front();
  project.outputs.erase(project.outputs.begin());
  for (const lg::GroupingCall& call : aggregate.groupings) {
    std::vector<int64_t> values;
    for (const std::vector<uint32_t>& set : expand.sets) values.push_back(GroupingOf(call, set));
    project.outputs.push_back(BySet(set_number, values));
  }
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), LayoutOf(node.columns), flow.rows(), flow));
  return flow;
}

absl::StatusOr<Flow> TreeLowering::LowerDistinct(const Node& node, const ColumnSet&) {
  ColumnSet below;
  if (const auto* project = node.input().As<lg::Project>(); project != nullptr) {
    // The groups' keys are its outputs.
    AddColumns(project->outputs, below);
    NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input().input(), below));
    plan::AggregateSink sink;
    NAM_ASSIGN_OR_RETURN(sink.group_by, OverSlots(project->outputs, flow.layout));
    return Group(std::move(flow), std::move(sink), LayoutOf(node.columns),
                 cardinalities_.ValuesOf(project->outputs));
  }
  for (const Column& column : node.columns) below.insert(column.ref);
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  NAM_RETURN_IF_ERROR(Arrange(node.columns, flow));
  plan::AggregateSink sink{.group_by = plan::SlotExprs(flow.schema())};
  std::vector<Expr> keys;
  for (const Column& column : node.columns) keys.push_back(lg::MakeColumn(column));
  return Group(std::move(flow), std::move(sink), LayoutOf(node.columns), cardinalities_.ValuesOf(keys));
}

/// The first row of each partition by the keys.
absl::StatusOr<Flow> TreeLowering::LowerDistinctOn(const Node& node, const ColumnSet& needed) {
  const auto& distinct = *node.As<lg::Distinct>();
  ColumnSet below = needed;
  AddColumns(distinct.on, below);
  for (const plan::OrderKey& key : distinct.order) AddColumns(key.expr, below);
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  for (const Expr& key : distinct.on) NAM_RETURN_IF_ERROR(CheckKey(key.type));
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> on, SlotsOf(distinct.on, flow));
  NAM_ASSIGN_OR_RETURN(const std::vector<plan::Order> order, OrderOf(distinct.order, flow));
  std::vector<plan::Order> by;
  for (const uint32_t slot : on) {
    const auto same =
        std::find_if(order.begin(), order.end(), [&](const plan::Order& o) { return o.slot == slot; });
    by.push_back(same != order.end() ? *same : plan::Order{slot, false, false});
  }
  const auto keys = static_cast<uint32_t>(by.size());
  by.insert(by.end(), order.begin(), order.end());
  Layout layout = flow.layout;
  layout.push_back(Unnamed());
  const double rows = flow.rows();
  NAM_ASSIGN_OR_RETURN(const uint32_t sorted, CloseSorted(std::move(flow), std::move(by)));
  plan::WindowSource source{
      .pipeline = sorted,
      .partition_keys = keys,
      .order_keys = static_cast<uint32_t>(order.size()),
      .calls = {{.function = plan::WindowFunction::kRowNumber, .type = Type::Integer()}}};
  NAM_ASSIGN_OR_RETURN(plan::Schema schema, plan::WindowOutput(builder_.draft(), source));
  Flow numbered{.pipeline = {.source = source,
                             .steps = {},
                             .sink = {},
                             .schemas = {std::move(schema)},
                             .estimates = {{rows, 1}},
                             .after = {source.pipeline},
                             .stage = Flow::kSession},
                .layout = layout};
  const auto last = static_cast<uint32_t>(layout.size()) - 1;
  plan::FilterStep first{
      {plan::MakeNode(Op::kEqual, Type::Bool(), -1,
                      {plan::SlotExpr(numbered.schema(), last), plan::MakeLiteral(Value::Integer(1), -1)})}};
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(first), std::move(layout), rows / 2, numbered));
  return numbered;
}

absl::StatusOr<Flow> TreeLowering::LowerSetOperation(const Node& node, const ColumnSet&) {
  const auto& set = *node.As<lg::SetOperation>();
  using Kind = lg::SetOperation::Kind;
  const bool counted = set.kind != Kind::kUnion;
  std::vector<Flow> flows;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ColumnSet below;
    for (const Column& column : node.input(i).columns) below.insert(column.ref);
    NAM_ASSIGN_OR_RETURN(Flow flow, LowerHere(node.input(i), below));
    NAM_RETURN_IF_ERROR(Arrange(node.input(i).columns, flow));
    plan::ProjectStep project{plan::SlotExprs(flow.schema())};
    for (size_t c = 0; c < node.columns.size(); ++c) {
      // Texts of other lengths: nothing else differs.
      const Type& type = node.columns[c].type;
      Expr& slot = project.outputs[c];
      if (slot.type != type) slot = plan::MakeNode(Op::kCast, type, -1, {std::move(slot)});
    }
    if (counted) {
      project.outputs.push_back(plan::MakeLiteral(Value::Integer(i == 0 ? 1 : 0), -1));
      project.outputs.push_back(plan::MakeLiteral(Value::Integer(i == 0 ? 0 : 1), -1));
    }
    Layout layout(project.outputs.size());
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), std::move(layout), flow.rows(), flow));
    flows.push_back(std::move(flow));
  }
  // They go into one sink, whose slots fit all of them.
  plan::Schema wide = flows[0].schema();
  for (const Flow& flow : flows) {
    for (size_t i = 0; i < wide.size(); ++i) {
      const plan::Slot& slot = flow.schema()[i];
      wide[i].nullable |= slot.nullable;
      const bool known = wide[i].bounds.known && slot.bounds.known;
      wide[i].bounds = known ? plan::Bounds{std::min(wide[i].bounds.low, slot.bounds.low),
                                            std::max(wide[i].bounds.high, slot.bounds.high), true}
                             : plan::Bounds{};
    }
  }
  const size_t columns = node.columns.size();
  plan::SinkNode sink = plan::SortSink{};
  if (counted || !set.all) {
    plan::AggregateSink group{.group_by = plan::SlotExprs(wide), .phase = Phase::kWhole};
    group.group_by.resize(columns);
    for (const Expr& key : group.group_by) NAM_RETURN_IF_ERROR(CheckKey(key.type));
    for (size_t side = 0; counted && side < 2; ++side) {
      group.aggregates.push_back({.function = AggregateFunction::kSum,
                                  .argument = plan::SlotExpr(wide, static_cast<uint32_t>(columns + side)),
                                  .type = Type::Integer()});
    }
    sink = std::move(group);
  }
  double rows = 0;
  std::vector<uint32_t> feeders;
  for (Flow& flow : flows) {
    rows += flow.rows();
    feeders.push_back(builder_.Close(std::move(flow), plan::FeedSink{}));
  }
  Flow all{.pipeline = {.source = plan::ValuesSource{},
                        .steps = {},
                        .sink = {},
                        .schemas = {std::move(wide)},
                        .estimates = {{rows, 1}},
                        .after = feeders,
                        .stage = Flow::kSession},
           .layout = Layout(columns + (counted ? 2 : 0))};
  const uint32_t target = builder_.Close(std::move(all), std::move(sink));
  for (const uint32_t feeder : feeders)
    std::get<plan::FeedSink>(builder_.pipeline(feeder).sink).pipeline = target;
  Layout layout = LayoutOf(node.columns);
  if (counted) {
    layout.push_back(Unnamed());
    layout.push_back(Unnamed());
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, builder_.Open(target, Flow::kSession, std::move(layout)));
  if (!counted) return flow;

  const Expr left = plan::SlotExpr(flow.schema(), static_cast<uint32_t>(columns)),
             right = plan::SlotExpr(flow.schema(), static_cast<uint32_t>(columns + 1));
  const auto compare = [](Op op, const Expr& a, Expr b) {
    return plan::MakeNode(op, Type::Bool(), -1, {a, std::move(b)});
  };
  const auto zero = [] { return plan::MakeLiteral(Value::Integer(0), -1); };
  const bool both = set.kind == Kind::kIntersect;
  plan::FilterStep keep;
  if (both) {
    keep.conditions = {compare(Op::kGreater, left, zero()), compare(Op::kGreater, right, zero())};
  } else if (set.all) {
    keep.conditions = {compare(Op::kGreater, left, right)};
  } else {
    keep.conditions = {compare(Op::kGreater, left, zero()), compare(Op::kEqual, right, zero())};
  }
  Layout kept = flow.layout;
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(keep), std::move(kept), rows / 2, flow));
  if (!set.all) return flow;
  plan::ProjectStep times{plan::SlotExprs(flow.schema())};
  times.outputs.resize(columns);
  times.outputs.push_back(
      both ? plan::MakeNode(Op::kCase, Type::Integer(), -1, {compare(Op::kLess, left, right), left, right})
           : plan::MakeNode(Op::kSubtract, Type::Integer(), -1, {left, right}));
  Layout with_times = LayoutOf(node.columns);
  with_times.push_back(Unnamed());
  Layout repeated = with_times;
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(times), std::move(with_times), flow.rows(), flow));
  NAM_RETURN_IF_ERROR(builder_.Append(plan::RepeatStep{static_cast<uint32_t>(columns)}, std::move(repeated),
                                      flow.rows(), flow));
  return flow;
}

}  // namespace nam::optimizer
