#include "absl/status/status.h"
#include "base/status_macros.h"
#include "optimizer/plan.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

/// Deeper expressions are refused: nothing a user writes, and recursion needs a bound.
constexpr int kMaxDepth = 500;

proto::Expr Encode(const plan::Expr& expr) {
  proto::Expr out;
  out.set_op(static_cast<uint32_t>(expr.op));
  *out.mutable_type() = ToProto(expr.type);
  out.set_table(expr.column.table);
  out.set_column(expr.column.column);
  out.set_index(expr.index);
  *out.mutable_literal() = ToProto(expr.literal);
  for (const plan::Expr& child : expr.children) *out.add_children() = Encode(child);
  return out;
}

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(std::string("not a plan: ") + what);
}

/// How many children an operator takes: exactly `least`, or more if `more`.
struct Arity {
  int least;
  bool more;
};

Arity ArityOf(plan::Op op) {
  using plan::Op;
  switch (op) {
    case Op::kColumn:
    case Op::kLiteral:
    case Op::kGroup:
    case Op::kAggregate:
      return {0, false};
    case Op::kNegate:
    case Op::kNot:
    case Op::kIsNull:
    case Op::kLike:
    case Op::kCast:
    case Op::kExtractYear:
    case Op::kExtractMonth:
    case Op::kExtractDay:
      return {1, false};
    case Op::kAnd:
    case Op::kOr:
    case Op::kIn:
      return {2, true};
    case Op::kCase:
      return {3, true};
    default:
      return {2, false};
  }
}

absl::Status Decode(const proto::Expr& in, size_t tables, int depth, plan::Expr& out) {
  if (depth > kMaxDepth) return Bad("expression too deep");
  if (in.op() > static_cast<uint32_t>(plan::Op::kAggregate)) return Bad("unknown operator");
  out.op = static_cast<plan::Op>(in.op());
  NAM_ASSIGN_OR_RETURN(out.type, TypeOf(in.type()));
  NAM_ASSIGN_OR_RETURN(out.literal, ValueOf(in.literal()));
  out.column = {in.table(), in.column()};
  out.index = in.index();
  if (out.op == plan::Op::kColumn &&
      (in.table() < 0 || static_cast<size_t>(in.table()) >= tables || in.column() < 0)) {
    return Bad("column of no table");
  }
  if (out.op == plan::Op::kGroup || out.op == plan::Op::kAggregate)
    return Bad("result of an aggregation inside of it");
  const bool integer_cast = out.op == plan::Op::kCast && out.type.kind == TypeKind::kInteger;
  if (integer_cast && out.index != -1 && out.index != 2 && out.index != 4 && out.index != 8)
    return Bad("cast to an integer of no known width");
  const Arity arity = ArityOf(out.op);
  const int children = in.children_size();
  if (children < arity.least || (!arity.more && children > arity.least))
    return Bad("wrong number of operands");
  if (out.op == plan::Op::kCase && children % 2 == 0) return Bad("CASE without its ELSE");
  for (const proto::Expr& child : in.children()) {
    NAM_RETURN_IF_ERROR(Decode(child, tables, depth + 1, out.children.emplace_back()));
  }
  if (out.op == plan::Op::kIn) {
    for (size_t i = 1; i < out.children.size(); ++i) {
      if (out.children[i].op != plan::Op::kLiteral) return Bad("IN over something else than literals");
    }
  }
  return absl::OkStatus();
}

template <typename Protos>
absl::Status Decode(const Protos& in, size_t tables, std::vector<plan::Expr>& out) {
  for (const proto::Expr& expr : in) NAM_RETURN_IF_ERROR(Decode(expr, tables, 0, out.emplace_back()));
  return absl::OkStatus();
}

absl::Status DecodeSink(const proto::Plan& in, Plan& plan) {
  const size_t tables = plan.tables.size();
  NAM_RETURN_IF_ERROR(Decode(in.group_by(), tables, plan.group_by));
  NAM_RETURN_IF_ERROR(Decode(in.output(), tables, plan.output));
  for (const proto::PlanAggregate& aggregate : in.aggregates()) {
    plan::Aggregate& out = plan.aggregates.emplace_back();
    if (aggregate.function() > static_cast<uint32_t>(plan::AggregateFunction::kCountDistinct))
      return Bad("unknown aggregate");
    out.function = static_cast<plan::AggregateFunction>(aggregate.function());
    NAM_RETURN_IF_ERROR(Decode(aggregate.argument(), tables, 0, out.argument));
    NAM_ASSIGN_OR_RETURN(out.type, TypeOf(aggregate.type()));
  }
  for (const proto::PlanOrder& order : in.order()) {
    plan::OrderKey& out = plan.order.emplace_back();
    NAM_RETURN_IF_ERROR(Decode(order.expr(), tables, 0, out.expr));
    out.descending = order.descending();
    out.nulls_first = order.nulls_first();
  }
  return absl::OkStatus();
}

}  // namespace

proto::Plan ToProto(const Plan& plan) {
  proto::Plan out;
  for (const Plan::Table& table : plan.tables) {
    proto::PlanTable& t = *out.add_tables();
    t.set_name(table.name);
    t.set_allocation(table.allocation);
    for (uint32_t column : table.columns) t.add_columns(column);
    for (const plan::Expr& filter : table.filters) *t.add_filters() = Encode(filter);
  }
  out.set_driving(static_cast<uint32_t>(plan.driving));
  for (const Plan::Join& join : plan.joins) {
    proto::JoinStep& step = *out.add_steps();
    step.set_table(static_cast<uint32_t>(join.table));
    *step.mutable_probe_key() = Encode(join.probe_key);
    *step.mutable_build_key() = Encode(join.build_key);
    for (const plan::Expr& residual : join.residuals) *step.add_residuals() = Encode(residual);
  }
  out.set_aggregated(plan.aggregated);
  for (const plan::Expr& key : plan.group_by) *out.add_group_by() = Encode(key);
  for (const plan::Aggregate& aggregate : plan.aggregates) {
    proto::PlanAggregate& a = *out.add_aggregates();
    a.set_function(static_cast<uint32_t>(aggregate.function));
    *a.mutable_argument() = Encode(aggregate.argument);
    *a.mutable_type() = ToProto(aggregate.type);
  }
  for (const plan::Expr& expr : plan.output) *out.add_output() = Encode(expr);
  for (const plan::OrderKey& key : plan.order) {
    proto::PlanOrder& o = *out.add_order();
    *o.mutable_expr() = Encode(key.expr);
    o.set_descending(key.descending);
    o.set_nulls_first(key.nulls_first);
  }
  out.set_row_limit(plan.row_limit);
  return out;
}

absl::StatusOr<Plan> FromProto(const proto::Plan& in) {
  Plan plan;
  const auto tables = static_cast<size_t>(in.tables_size());
  if (tables == 0 || in.driving() >= tables || in.steps_size() + 1 != in.tables_size())
    return Bad("tables and joins do not match");
  for (const proto::PlanTable& table : in.tables()) {
    Plan::Table& t = plan.tables.emplace_back();
    t.name = table.name();
    t.allocation = table.allocation();
    t.columns = {table.columns().begin(), table.columns().end()};
    NAM_RETURN_IF_ERROR(Decode(table.filters(), tables, t.filters));
  }
  plan.driving = static_cast<int>(in.driving());
  std::vector<bool> joined(tables);
  joined[in.driving()] = true;
  for (const proto::JoinStep& step : in.steps()) {
    Plan::Join& join = plan.joins.emplace_back();
    if (step.table() >= tables || joined[step.table()]) return Bad("a table is joined twice");
    join.table = static_cast<int>(step.table());
    NAM_RETURN_IF_ERROR(Decode(step.probe_key(), tables, 0, join.probe_key));
    NAM_RETURN_IF_ERROR(Decode(step.build_key(), tables, 0, join.build_key));
    for (plan::ColumnRef column : plan::ColumnsOf(join.probe_key)) {
      if (!joined[static_cast<size_t>(column.table)]) return Bad("a probe key of a table not joined yet");
    }
    for (plan::ColumnRef column : plan::ColumnsOf(join.build_key)) {
      if (column.table != join.table) return Bad("a build key of another table");
    }
    joined[step.table()] = true;
    NAM_RETURN_IF_ERROR(Decode(step.residuals(), tables, join.residuals));
  }
  plan.aggregated = in.aggregated();
  plan.row_limit = in.row_limit();
  NAM_RETURN_IF_ERROR(DecodeSink(in, plan));
  return plan;
}

}  // namespace nam::optimizer
