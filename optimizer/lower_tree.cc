#include "optimizer/lower_tree.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/tree_lowering.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/function.h"
#include "plan/slot_of.h"
#include "plan/table_schema.h"
#include "types/sql_error.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::Op;

absl::Status NotSupported(const std::string& what) {
  return ToStatus({.message = what + " is not supported", .hint = "", .sqlstate = sqlstate::kNotSupported});
}

absl::Status CheckKey(const Type& type) {
  return type.packed() ? NotSupported("grouping or ordering by packed values") : absl::OkStatus();
}

Layout LayoutOf(const std::vector<lg::Column>& columns) {
  Layout layout;
  for (const lg::Column& column : columns) layout.push_back(column.ref);
  return layout;
}

Expr Where(const Expr& condition, Expr expr) {
  const Type type = expr.type;
  return plan::MakeNode(Op::kCase, type, expr.position,
                        {condition, std::move(expr), plan::MakeLiteral(Value::Null(type), -1)});
}

namespace {

/// Servers sort no fewer rows, as far as rows are expected.
constexpr double kFewestSortedRows = 10'000;
/// The memory of a row kept as one of the first: beside its values, and for each of them.
constexpr uint64_t kOrderBytes = 32, kNumberBytes = 8, kTextBytes = 32;

void AddConditions(const std::vector<Expr>& conditions, ColumnSet& columns) {
  AddColumns(conditions, columns);
}

ColumnSet ColumnsOfNode(const lg::Node& node) {
  ColumnSet columns;
  for (const lg::Column& column : node.columns) columns.insert(column.ref);
  return columns;
}

}  // namespace

absl::StatusOr<LoweredTree> LowerTree(const lg::Query& query, const LoweringOptions& options,
                                      const StageFacts& facts) {
  return TreeLowering(options, facts).Run(query);
}

absl::StatusOr<LoweredTree> TreeLowering::Run(const lg::Query& query) {
  cardinalities_ = Cardinalities(*query.root);
  NAM_ASSIGN_OR_RETURN(Flow flow, LowerHere(*query.root, ColumnsOfNode(*query.root)));
  NAM_RETURN_IF_ERROR(Arrange(query.root->columns, flow));
  builder_.Close(std::move(flow), plan::ResultSink{});
  LoweredTree out;
  NAM_ASSIGN_OR_RETURN(out.lowered, builder_.Finish());
  // Pipelines have their numbers now: finds each transaction's scan by its table.
  for (uint32_t p = 0; p < out.lowered.plan.pipelines.size(); ++p) {
    const auto* scan = std::get_if<plan::RecordScan>(&out.lowered.plan.pipelines[p].source);
    if (scan == nullptr) continue;
    const auto place = std::find_if(transaction_scans_.begin(), transaction_scans_.end(),
                                    [&](const TransactionScan& s) { return s.table == scan->table; });
    if (place == transaction_scans_.end()) continue;  // servers scan it
    place->pipeline = p;
    out.transaction_scans.push_back(std::move(*place));
  }
  out.prepared_tables = std::move(prepared_tables_);
  return out;
}

absl::StatusOr<Flow> TreeLowering::Lower(const Node& node, const ColumnSet& needed, int64_t rows_wanted) {
  if (IsJoinBlock(node)) return LowerJoinBlock(node, needed, rows_wanted);
  struct Visitor {
    TreeLowering& to;
    const Node& node;
    const ColumnSet& needed;
    const int64_t rows_wanted;

    using Result = absl::StatusOr<Flow>;
    Result operator()(const lg::Scan&) const { NAM_CHECK(false, "a join block"); }
    Result operator()(const lg::Values&) const { return to.LowerValues(node); }
    Result operator()(const lg::FileScan&) const { return to.LowerFileScan(node, needed); }
    Result operator()(const lg::Filter&) const { return to.LowerFilter(node, needed); }
    Result operator()(const lg::Project&) const { return to.LowerProject(node, needed, rows_wanted); }
    Result operator()(const lg::Join&) const { return to.LowerJoin(node, needed); }
    Result operator()(const lg::Aggregate&) const { return to.LowerAggregate(node, needed); }
    Result operator()(const lg::Window&) const { return to.LowerWindow(node, needed); }
    Result operator()(const lg::Sort&) const { return to.LowerSort(node, needed, rows_wanted); }
    Result operator()(const lg::Limit&) const { return to.LowerLimit(node, needed, rows_wanted); }
    Result operator()(const lg::Distinct& distinct) const {
      return distinct.on.empty() ? to.LowerDistinct(node, needed) : to.LowerDistinctOn(node, needed);
    }
    Result operator()(const lg::SetOperation&) const { return to.LowerSetOperation(node, needed); }
    Result operator()(const lg::With&) const { return to.LowerWith(node, needed, rows_wanted); }
    Result operator()(const lg::CteScan&) const { return to.LowerCteScan(node, needed); }
    Result operator()(const lg::Series&) const { return to.LowerSeries(node, needed); }
  };
  return std::visit(Visitor{*this, node, needed, rows_wanted}, node.op);
}

absl::StatusOr<Flow> TreeLowering::LowerHere(const Node& node, const ColumnSet& needed, int64_t rows_wanted) {
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node, needed, rows_wanted));
  return ToSession(std::move(flow), {}, rows_wanted);
}

absl::StatusOr<Flow> TreeLowering::ToSession(Flow flow, std::vector<plan::Order> order, int64_t rows_wanted) {
  if (!flow.on_servers()) return flow;
  const bool runs = rows_wanted < 0 && !order.empty() && MakesRuns(flow);
  Layout layout = flow.layout;
  const uint32_t stage = flow.pipeline.stage;
  const double wanted = rows_wanted < 0 ? flow.rows() : static_cast<double>(rows_wanted);
  const double rows = std::min(flow.rows(), wanted);
  plan::ResultSink result{.limit = rows_wanted};
  if (runs || rows_wanted >= 0) result.order = std::move(order);
  if (runs) result.runs = options_.runs;
  NAM_ASSIGN_OR_RETURN(Flow here, builder_.Through(std::move(flow), std::move(result), std::move(layout)));
  here.pipeline.estimates[0].rows = End(stage, {.rows = rows}, /*barrier=*/false).rows;
  return here;
}

absl::StatusOr<uint32_t> TreeLowering::CloseSorted(Flow flow, std::vector<plan::Order> order) {
  NAM_ASSIGN_OR_RETURN(flow, ToSession(std::move(flow), order));
  plan::SortSink sort{.order = std::move(order)};
  if (!sort.order.empty()) sort.runs = options_.runs;
  return builder_.Close(std::move(flow), std::move(sort));
}

bool TreeLowering::MakesRuns(const Flow& flow) const {
  if (options_.runs != plan::Runs::kIfMany) return options_.runs == plan::Runs::kAlways;
  return std::min(RowsMost(flow, builder_.tables()), flow.rows() * kGuessesAreOff) > kFewestSortedRows;
}

bool TreeLowering::KeepsTop(const plan::Schema& schema, int64_t rows_wanted) const {
  if (rows_wanted < 0) return false;
  if (options_.runs == plan::Runs::kNever) return true;
  uint64_t row_bytes = kOrderBytes;
  for (const plan::Slot& slot : schema)
    row_bytes += PhysicalOf(slot.type) == Physical::kText ? kTextBytes : kNumberBytes;
  return static_cast<uint64_t>(rows_wanted) <= options_.top_bytes_max / row_bytes;
}

StageFact TreeLowering::End(uint32_t stage, const StageFact& expected, bool barrier) {
  const uint32_t number = builder_.EndStage(stage);
  const auto fact = facts_.find(number);
  ServerStage& ended = builder_.stage(stage);
  ended.barrier = barrier;
  ended.expected = fact != facts_.end() ? fact->second : expected;
  return ended.expected;
}

absl::StatusOr<std::vector<uint32_t>> TreeLowering::SlotsOf(const std::vector<Expr>& exprs, Flow& flow) {
  std::vector<uint32_t> slots;
  plan::ProjectStep project{plan::SlotExprs(flow.schema())};
  Layout layout = flow.layout;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Expr over, OverSlots(expr, flow.layout));
    if (const std::optional<uint32_t> bare = plan::BareSlot(over); bare.has_value()) {
      slots.push_back(*bare);
      continue;
    }
    slots.push_back(static_cast<uint32_t>(project.outputs.size()));
    project.outputs.push_back(std::move(over));
    layout.push_back(Unnamed());
  }
  if (layout.size() > flow.layout.size())
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), std::move(layout), flow.rows(), flow));
  return slots;
}

absl::StatusOr<std::vector<plan::Order>> TreeLowering::OrderOf(const std::vector<plan::OrderKey>& keys,
                                                               Flow& flow) {
  std::vector<Expr> exprs;
  for (const plan::OrderKey& key : keys) {
    NAM_RETURN_IF_ERROR(CheckKey(key.expr.type));
    exprs.push_back(key.expr);
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> slots, SlotsOf(exprs, flow));
  std::vector<plan::Order> order;
  for (size_t k = 0; k < keys.size(); ++k)
    order.push_back({slots[k], keys[k].descending, keys[k].nulls_first});
  return order;
}

absl::Status TreeLowering::Arrange(const std::vector<Column>& columns, Flow& flow) {
  Layout layout = LayoutOf(columns);
  if (layout == flow.layout) return absl::OkStatus();
  plan::ProjectStep project;
  for (const Column& column : columns) {
    NAM_ASSIGN_OR_RETURN(Expr slot, OverSlots(lg::MakeColumn(column), flow.layout));
    project.outputs.push_back(std::move(slot));
  }
  return builder_.Append(std::move(project), std::move(layout), flow.rows(), flow);
}

absl::StatusOr<Flow> TreeLowering::LowerValues(const Node& node) {
  const auto& values = *node.As<lg::Values>();
  plan::Schema schema;
  for (size_t i = 0; i < node.columns.size(); ++i) {
    bool nullable = node.columns[i].nullable;
    for (const std::vector<Value>& row : values.rows) nullable = nullable || row[i].null;
    schema.push_back({node.columns[i].type, nullable, {}});
  }
  const auto rows = static_cast<double>(values.rows.size());
  return Flow{.pipeline = {.source = plan::ValuesSource{values.rows},
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(schema)},
                           .estimates = {{rows, 1}},
                           .after = {},
                           .stage = Flow::kSession},
              .layout = LayoutOf(node.columns)};
}

absl::StatusOr<Flow> TreeLowering::LowerFileScan(const Node& node, const ColumnSet& needed) {
  const auto& scan = *node.As<lg::FileScan>();
  Layout layout;
  for (const Column& column : node.columns) {
    if (needed.contains(column.ref)) layout.push_back(column.ref);
  }
  std::sort(layout.begin(), layout.end());
  plan::FileSource source{scan.files, scan.table->name(), {}, {}};
  plan::Schema schema;
  for (const ColumnRef column : layout) {
    source.columns.push_back(static_cast<uint32_t>(column.column));
    source.column_names.push_back(scan.table->columns(column.column).name());
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(*scan.table, source.columns.back()));
    schema.push_back(std::move(slot));
  }
  return Flow{.pipeline = {.source = std::move(source),
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(schema)},
                           .estimates = {{static_cast<double>(scan.table->rows()), 1}},
                           .after = {},
                           .stage = Flow::kSession},
              .layout = std::move(layout)};
}

absl::StatusOr<Flow> TreeLowering::LowerFilter(const Node& node, const ColumnSet& needed) {
  const auto& filter = *node.As<lg::Filter>();
  ColumnSet below = needed;
  AddConditions(filter.conditions, below);
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  plan::FilterStep step;
  NAM_ASSIGN_OR_RETURN(step.conditions, OverSlots(filter.conditions, flow.layout));
  Layout layout = flow.layout;
  const double rows = flow.rows() * cardinalities_.ShareOf(filter.conditions);
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(step), std::move(layout), rows, flow));
  return flow;
}

absl::StatusOr<Flow> TreeLowering::LowerProject(const Node& node, const ColumnSet& needed,
                                                int64_t rows_wanted) {
  const auto& project = *node.As<lg::Project>();
  ColumnSet below;
  plan::ProjectStep step;
  Layout layout;
  std::vector<Expr> outputs;
  for (size_t i = 0; i < project.outputs.size(); ++i) {
    if (!needed.contains(node.columns[i].ref)) continue;
    AddColumns(project.outputs[i], below);
    outputs.push_back(project.outputs[i]);
    layout.push_back(node.columns[i].ref);
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below, rows_wanted));
  NAM_ASSIGN_OR_RETURN(step.outputs, OverSlots(outputs, flow.layout));
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(step), std::move(layout), flow.rows(), flow));
  return flow;
}

void TreeLowering::WishFor(const std::vector<plan::OrderKey>& order, const Node& node) {
  // The order of an index: ascending, NULLs last.
  std::vector<ColumnRef> columns;
  for (const plan::OrderKey& key : order) {
    const Expr* const column = plan::KeyedColumn(key.expr);
    if (column == nullptr || key.descending || key.nulls_first) return;
    columns.push_back(column->column);
  }
  const Node* at = &node;
  for (; at->As<lg::Scan>() == nullptr; at = &at->input()) {
    if (at->As<lg::Filter>() != nullptr) continue;
    const auto* project = at->As<lg::Project>();
    if (project == nullptr) return;
    for (ColumnRef& column : columns) {
      for (size_t i = 0; i < at->columns.size(); ++i) {
        if (at->columns[i].ref != column) continue;
        if (project->outputs[i].op != Op::kColumn) return;
        column = project->outputs[i].column;
        break;
      }
    }
  }
  const auto& scan = *at->As<lg::Scan>();
  if (!scan.table->has_record()) return;
  wish_ = OrderWish{.relation = scan.relation, .columns = {}};
  for (const ColumnRef column : columns) wish_->columns.push_back(static_cast<uint32_t>(column.column));
}

absl::StatusOr<Flow> TreeLowering::LowerSort(const Node& node, const ColumnSet& needed, int64_t rows_wanted) {
  const auto& sort = *node.As<lg::Sort>();
  ColumnSet below = needed;
  for (const plan::OrderKey& key : sort.keys) AddColumns(key.expr, below);
  if (rows_wanted >= 0) WishFor(sort.keys, node.input());
  const bool wished = wish_.has_value();
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below, wished ? rows_wanted : -1));
  const bool met = wished && wish_->met;
  wish_.reset();
  if (met) return flow;
  NAM_ASSIGN_OR_RETURN(const std::vector<plan::Order> order, OrderOf(sort.keys, flow));
  Layout layout = flow.layout;
  if (!KeepsTop(flow.schema(), rows_wanted)) {
    NAM_ASSIGN_OR_RETURN(const uint32_t sorted, CloseSorted(std::move(flow), order));
    return builder_.Open(sorted, Flow::kSession, std::move(layout), /*in_order=*/true);
  }
  NAM_ASSIGN_OR_RETURN(flow, ToSession(std::move(flow), order, rows_wanted));
  return builder_.Through(std::move(flow), plan::SortSink{.order = order, .limit = rows_wanted},
                          std::move(layout), /*in_order=*/true);
}

absl::StatusOr<Flow> TreeLowering::LowerLimit(const Node& node, const ColumnSet& needed,
                                              int64_t rows_wanted) {
  const auto& limit = *node.As<lg::Limit>();
  const bool with_ties = limit.rows.has_value() && *limit.rows > 0 && !limit.ties.empty();
  int64_t wanted = -1;
  if (limit.rows.has_value() && !with_ties) {
    const int64_t rows = rows_wanted < 0 ? *limit.rows : std::min(*limit.rows, rows_wanted);
    if (__builtin_add_overflow(rows, limit.offset, &wanted)) wanted = -1;
  }
  ColumnSet below = needed;
  if (with_ties) AddColumns(limit.ties, below);
  NAM_ASSIGN_OR_RETURN(Flow flow, LowerHere(node.input(), below, wanted));
  plan::LimitStep step{.rows = limit.rows.value_or(-1), .offset = limit.offset};
  if (with_ties) {
    NAM_ASSIGN_OR_RETURN(step.ties, SlotsOf(limit.ties, flow));
  }
  Layout layout = flow.layout;
  const double rows = wanted < 0 ? flow.rows() : std::min(flow.rows(), static_cast<double>(wanted));
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(step), std::move(layout), rows, flow));
  return flow;
}

absl::StatusOr<Flow> TreeLowering::LowerSeries(const Node& node, const ColumnSet& needed) {
  const auto& series = *node.As<lg::Series>();
  ColumnSet below = needed;
  below.erase(series.result.ref);
  for (const Expr* end : {&series.first, &series.last, &series.step}) AddColumns(*end, below);
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  plan::SeriesStep step;
  NAM_ASSIGN_OR_RETURN(step.first, OverSlots(series.first, flow.layout));
  NAM_ASSIGN_OR_RETURN(step.last, OverSlots(series.last, flow.layout));
  NAM_ASSIGN_OR_RETURN(step.step, OverSlots(series.step, flow.layout));
  Layout layout = flow.layout;
  layout.push_back(series.result.ref);
  const double rows = flow.rows() * RowsOfSeries(series);
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(step), std::move(layout), rows, flow));
  return flow;
}

namespace {

/// The distance of a frame's bound in units of the order key's numbers.
absl::StatusOr<__int128> OffsetOf(const lg::FrameBound& bound, const lg::Frame& frame, const Type& key) {
  const bool has =
      bound.kind == lg::FrameBound::Kind::kPreceding || bound.kind == lg::FrameBound::Kind::kFollowing;
  if (!has) return __int128{0};
  if (frame.unit != lg::Frame::Unit::kRange || !key.numeric()) return bound.offset.number;
  __int128 offset = bound.offset.number;
  for (int scale = bound.offset.type.scale; scale < key.scale; ++scale) {
    if (__builtin_mul_overflow(offset, 10, &offset)) return NotSupported("a frame as wide as this");
  }
  if (bound.offset.type.scale > key.scale)
    return NotSupported("a frame's distance with more decimals than its order");
  return offset;
}

plan::WindowFunction WindowFunctionOf(lg::WindowFunction function) {
  switch (function) {
    case lg::WindowFunction::kAggregate:
      return plan::WindowFunction::kAggregate;
    case lg::WindowFunction::kRowNumber:
      return plan::WindowFunction::kRowNumber;
    case lg::WindowFunction::kRank:
      return plan::WindowFunction::kRank;
    case lg::WindowFunction::kDenseRank:
      return plan::WindowFunction::kDenseRank;
    case lg::WindowFunction::kNtile:
      return plan::WindowFunction::kNtile;
    case lg::WindowFunction::kLag:
      return plan::WindowFunction::kLag;
    case lg::WindowFunction::kLead:
      return plan::WindowFunction::kLead;
    case lg::WindowFunction::kFirstValue:
      return plan::WindowFunction::kFirstValue;
    case lg::WindowFunction::kLastValue:
      return plan::WindowFunction::kLastValue;
    case lg::WindowFunction::kNthValue:
      return plan::WindowFunction::kNthValue;
    case lg::WindowFunction::kPercentRank:
      return plan::WindowFunction::kPercentRank;
    case lg::WindowFunction::kCumeDist:
      return plan::WindowFunction::kCumeDist;
  }
  NAM_CHECK(false, "an unknown window function");
}

plan::FrameBound BoundOf(const lg::FrameBound& bound, __int128 offset) {
  return {static_cast<plan::FrameBound::Kind>(bound.kind), offset};
}

}  // namespace

absl::StatusOr<Flow> TreeLowering::LowerWindow(const Node& node, const ColumnSet& needed) {
  const auto& window = *node.As<lg::Window>();
  ColumnSet below = needed;
  AddColumns(window.partition, below);
  for (const plan::OrderKey& key : window.order) AddColumns(key.expr, below);
  std::vector<std::vector<Expr>> arguments;
  for (const lg::WindowCall& call : window.calls) {
    std::vector<Expr>& of_call = arguments.emplace_back(call.arguments);
    if (call.function == lg::WindowFunction::kAggregate &&
        (call.aggregate.function != plan::AggregateFunction::kCountRows ||
         call.aggregate.filter.has_value())) {
      Expr argument = call.aggregate.function == plan::AggregateFunction::kCountRows
                          ? plan::MakeLiteral(Value::Bool(true), -1)
                          : call.aggregate.argument;
      if (call.aggregate.filter.has_value()) argument = Where(*call.aggregate.filter, std::move(argument));
      of_call.push_back(std::move(argument));
      if (plan::ArgumentsOf(call.aggregate.function) > 1) {
        Expr second = call.aggregate.second;
        if (call.aggregate.filter.has_value() && !plan::IsConstant(second))
          second = Where(*call.aggregate.filter, std::move(second));
        of_call.push_back(std::move(second));
      }
    }
    AddColumns(of_call, below);
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(), below));
  plan::WindowSource source;
  std::vector<plan::Order> by;
  NAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> partition, SlotsOf(window.partition, flow));
  for (const uint32_t slot : partition) {
    NAM_RETURN_IF_ERROR(CheckKey(flow.schema()[slot].type));
    by.push_back({slot, false, false});
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<plan::Order> order, OrderOf(window.order, flow));
  by.insert(by.end(), order.begin(), order.end());
  source.partition_keys = static_cast<uint32_t>(partition.size());
  source.order_keys = static_cast<uint32_t>(order.size());
  for (size_t c = 0; c < window.calls.size(); ++c) {
    const lg::WindowCall& call = window.calls[c];
    plan::WindowCall& to = source.calls.emplace_back();
    to.function = WindowFunctionOf(call.function);
    to.aggregate = call.aggregate.function;
    if (call.aggregate.filter.has_value() && to.aggregate == plan::AggregateFunction::kCountRows)
      to.aggregate = plan::AggregateFunction::kCount;
    NAM_ASSIGN_OR_RETURN(to.arguments, SlotsOf(arguments[c], flow));
    const Type key = window.order.empty() ? Type() : window.order[0].expr.type;
    to.frame.unit = static_cast<plan::WindowFrame::Unit>(call.frame.unit);
    to.frame.exclusion = static_cast<plan::WindowFrame::Exclusion>(call.frame.exclusion);
    NAM_ASSIGN_OR_RETURN(const __int128 start, OffsetOf(call.frame.start, call.frame, key));
    NAM_ASSIGN_OR_RETURN(const __int128 end, OffsetOf(call.frame.end, call.frame, key));
    to.frame.start = BoundOf(call.frame.start, start);
    to.frame.end = BoundOf(call.frame.end, end);
    to.type = call.result.type;
  }
  Layout layout = flow.layout;
  for (const lg::WindowCall& call : window.calls) layout.push_back(call.result.ref);
  const double rows = flow.rows();
  NAM_ASSIGN_OR_RETURN(source.pipeline, CloseSorted(std::move(flow), std::move(by)));
  NAM_ASSIGN_OR_RETURN(plan::Schema schema, plan::WindowOutput(builder_.draft(), source));
  return Flow{.pipeline = {.source = source,
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(schema)},
                           .estimates = {{rows, 1}},
                           .after = {source.pipeline},
                           .stage = Flow::kSession},
              .layout = std::move(layout)};
}

}  // namespace nam::optimizer
