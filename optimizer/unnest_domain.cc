#include "optimizer/unnest_domain.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "types/sql_error.h"

namespace nam::optimizer {
namespace {

using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::MakeLiteral;
using plan::Op;
using plan::OrderKey;
using plan::logical::Aggregate;
using plan::logical::Column;
using plan::logical::ColumnSet;
using plan::logical::CteScan;
using plan::logical::DeriveColumns;
using plan::logical::Distinct;
using plan::logical::FindColumn;
using plan::logical::FreeColumns;
using plan::logical::Join;
using plan::logical::Limit;
using plan::logical::MakeColumn;
using plan::logical::MakeFilter;
using plan::logical::MakeJoin;
using plan::logical::MakeNode;
using plan::logical::Node;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::Series;
using plan::logical::SetOperation;
using plan::logical::Sort;
using plan::logical::Window;
using plan::logical::WindowCall;
using plan::logical::WindowFunction;
using plan::logical::With;

/// Adds a plain column as an output, unless there is one of its name.
void Keep(const Column& column, Project& project, std::vector<Column>& columns) {
  if (FindColumn(columns, column.ref) != nullptr) return;
  project.outputs.push_back(MakeColumn(column));
  columns.push_back(column);
}

/// `value`, or `otherwise` where it is NULL.
Expr OrElse(const Expr& value, Expr otherwise) {
  std::vector<Expr> parts;
  parts.push_back(plan::MakeNode(Op::kIsNull, Type::Bool(), -1, {value}));
  parts.push_back(std::move(otherwise));
  parts.push_back(value);
  return plan::MakeNode(Op::kCase, value.type, -1, std::move(parts));
}

bool Counts(AggregateFunction function) {
  return function == AggregateFunction::kCount || function == AggregateFunction::kCountRows;
}

}  // namespace

Expr CountOrZero(const Column& count) {
  return OrElse(MakeColumn(count), MakeLiteral(Value::Integer(0), -1));
}

DomainPush::DomainPush(plan::logical::Query& query, std::vector<Column> outer, int left,
                       std::vector<uint32_t> fields)
    : query_(query),
      outer_(std::move(outer)),
      left_(left),
      fields_(std::move(fields)),
      domain_(query.ctes++) {}

bool DomainPush::Correlated(const Node& root) const {
  const ColumnSet free = FreeColumns(root);
  const auto names = [&](const Column& column) { return free.count(column.ref) > 0; };
  if (std::any_of(outer_.begin(), outer_.end(), names)) return true;
  const auto* scan = root.As<CteScan>();
  if (scan != nullptr && correlated_.count(scan->cte) > 0) return true;
  return std::any_of(root.inputs.begin(), root.inputs.end(),
                     [&](const NodePtr& input) { return Correlated(*input); });
}

std::vector<Column> DomainPush::Renamed(const std::vector<Column>& columns) {
  std::vector<Column> renamed = columns;
  const int relation = query_.relations++;
  for (size_t i = 0; i < renamed.size(); ++i) renamed[i].ref = {relation, static_cast<int>(i)};
  return renamed;
}

DomainPush::Pushed DomainPush::Scan() {
  CteScan scan{domain_, {}};
  for (uint32_t i = 0; i < outer_.size(); ++i) scan.fields.push_back(i);
  Pushed pushed;
  pushed.domain = Renamed(outer_);
  pushed.node = MakeNode(std::move(scan), pushed.domain);
  return pushed;
}

NodePtr DomainPush::Define(NodePtr root) {
  const std::vector<Column> columns = Renamed(outer_);
  NodePtr values = MakeNode(CteScan{left_, fields_}, columns);
  NodePtr definition = MakeNode(Distinct{}, {}, std::move(values));
  return MakeNode(With{domain_, "domain"}, {}, std::move(definition), std::move(root));
}

Expr DomainPush::Replaced(Expr expr, const Columns& domain) const {
  if (expr.op == Op::kColumn) {
    for (size_t i = 0; i < outer_.size(); ++i) {
      if (outer_[i].ref == expr.column) expr.column = domain[i].ref;
    }
  }
  for (Expr& child : expr.children) child = Replaced(std::move(child), domain);
  return expr;
}

void DomainPush::ReplaceIn(Node& node, const Columns& domain) const {
  ForExpressions(node, [&](Expr& expr) { expr = Replaced(std::move(expr), domain); });
}

std::vector<Expr> DomainPush::Alike(const Columns& a, const Columns& b) {
  std::vector<Expr> conditions;
  for (size_t i = 0; i < a.size(); ++i) {
    conditions.push_back(
        plan::logical::MakeNotDistinct(MakeColumn(a[i]), a[i].nullable, MakeColumn(b[i]), b[i].nullable));
  }
  return conditions;
}

/// These columns and the domain's, in this order.
DomainPush::Pushed DomainPush::Trimmed(Pushed pushed, const std::vector<Column>& columns) {
  Project project;
  std::vector<Column> kept;
  for (const Column& column : columns) Keep(column, project, kept);
  for (const Column& column : pushed.domain) Keep(column, project, kept);
  pushed.node = MakeNode(std::move(project), std::move(kept), std::move(pushed.node));
  pushed.order.clear();
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::Push(NodePtr node, bool want_order) {
  const bool keeps_order = node->As<plan::logical::Filter>() != nullptr || node->As<Project>() != nullptr ||
                           node->As<Sort>() != nullptr || node->As<Limit>() != nullptr ||
                           node->As<With>() != nullptr || node->As<Series>() != nullptr;
  if (!Correlated(*node) && !(want_order && keeps_order)) {
    Pushed pushed = Scan();
    pushed.node = MakeJoin(JoinKind::kInner, std::move(pushed.node), std::move(node));
    return pushed;
  }
  if (node->As<plan::logical::Filter>() != nullptr || node->As<Series>() != nullptr)
    return PushRowwise(std::move(node), want_order);
  if (node->As<Project>() != nullptr) return PushProject(std::move(node), want_order);
  if (node->As<Join>() != nullptr) return PushJoin(std::move(node));
  if (node->As<Aggregate>() != nullptr) return PushAggregate(std::move(node));
  if (node->As<Window>() != nullptr) return PushWindow(std::move(node));
  if (node->As<Sort>() != nullptr) return PushSort(std::move(node), want_order);
  if (node->As<Limit>() != nullptr) return PushLimit(std::move(node), want_order);
  if (node->As<Distinct>() != nullptr) return PushDistinct(std::move(node));
  if (node->As<SetOperation>() != nullptr) return PushSetOperation(std::move(node));
  if (node->As<With>() != nullptr) return PushWith(std::move(node), want_order);
  if (node->As<CteScan>() != nullptr) return PushCteScan(std::move(node));
  return absl::InternalError("a correlated operator that has no expressions");
}

/// Filters and series: each row's output depends on that row alone, and its columns stay.
absl::StatusOr<DomainPush::Pushed> DomainPush::PushRowwise(NodePtr node, bool want_order) {
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0]), want_order));
  ReplaceIn(*node, pushed.domain);
  node->inputs[0] = std::move(pushed.node);
  DeriveColumns(*node);
  pushed.node = std::move(node);
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushProject(NodePtr node, bool want_order) {
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0]), want_order));
  ReplaceIn(*node, pushed.domain);
  Project& project = *node->As<Project>();
  for (const Column& column : pushed.domain) Keep(column, project, node->columns);
  for (const OrderKey& key : pushed.order) {
    for (const ColumnRef ref : ColumnsOf(key.expr)) {
      if (const Column* column = FindColumn(pushed.node->columns, ref)) Keep(*column, project, node->columns);
    }
  }
  node->inputs[0] = std::move(pushed.node);
  DeriveColumns(*node);
  pushed.node = std::move(node);
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushJoin(NodePtr node) {
  Join& join = *node->As<Join>();
  if (join.kind == JoinKind::kFull) return PushFullJoin(std::move(node));
  const bool left = Correlated(node->input(0)), right = Correlated(node->input(1));
  // Every row of the domain needs its own rows of the side whose rows are kept.
  const bool keeps_right = join.kind == JoinKind::kRight;
  const bool keeps_left = !keeps_right && join.kind != JoinKind::kInner;
  const bool push_right = keeps_right || right;
  const bool push_left = keeps_left || left || !push_right;
  Columns a, b;
  if (push_left) {
    NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0])));
    node->inputs[0] = std::move(pushed.node);
    a = std::move(pushed.domain);
  }
  if (push_right) {
    NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[1])));
    node->inputs[1] = std::move(pushed.node);
    b = std::move(pushed.domain);
  }
  Pushed pushed;
  pushed.domain = !push_left || keeps_right ? b : a;
  ReplaceIn(*node, pushed.domain);
  if (push_left && push_right) {
    for (Expr& condition : Alike(a, b)) join.conditions.push_back(std::move(condition));
  }
  DeriveColumns(*node);
  pushed.node = std::move(node);
  return pushed;
}

/// Either side may be filled with NULLs: the domain's value comes from the side that is not.
absl::StatusOr<DomainPush::Pushed> DomainPush::PushFullJoin(NodePtr node) {
  NAM_ASSIGN_OR_RETURN(Pushed a, Push(std::move(node->inputs[0])));
  NAM_ASSIGN_OR_RETURN(Pushed b, Push(std::move(node->inputs[1])));
  node->inputs[0] = std::move(a.node);
  node->inputs[1] = std::move(b.node);
  ReplaceIn(*node, a.domain);
  for (Expr& condition : Alike(a.domain, b.domain))
    node->As<Join>()->conditions.push_back(std::move(condition));
  DeriveColumns(*node);
  Project project;
  std::vector<Column> columns;
  for (const Column& column : node->columns) Keep(column, project, columns);
  Pushed pushed;
  pushed.domain = Renamed(outer_);
  for (size_t i = 0; i < outer_.size(); ++i) {
    project.outputs.push_back(OrElse(MakeColumn(a.domain[i]), MakeColumn(b.domain[i])));
    pushed.domain[i].nullable = true;
    columns.push_back(pushed.domain[i]);
  }
  pushed.node = MakeNode(std::move(project), std::move(columns), std::move(node));
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushAggregate(NodePtr node) {
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0])));
  ReplaceIn(*node, pushed.domain);
  Node original;
  original.op = node->op;
  original.columns = node->columns;
  Aggregate& aggregate = *node->As<Aggregate>();
  const size_t keys = aggregate.keys.size();
  const auto empty = [](const auto& set) { return set.empty(); };
  const auto empty_sets = std::count_if(aggregate.sets.begin(), aggregate.sets.end(), empty);
  if (empty_sets > 1) {
    return Refusal("several empty grouping sets in a correlated subquery are not supported", -1,
                   "write () once in GROUPING SETS");
  }
  const std::vector<Column> domain = Renamed(outer_);
  for (size_t i = 0; i < outer_.size(); ++i) {
    aggregate.keys.push_back(MakeColumn(pushed.domain[i]));
    for (auto& set : aggregate.sets) set.push_back(static_cast<uint32_t>(keys + i));
  }
  node->columns.insert(node->columns.begin() + static_cast<std::ptrdiff_t>(keys), domain.begin(),
                       domain.end());
  pushed.domain = domain;
  pushed.order.clear();
  const bool groups_nothing = aggregate.sets.empty() ? keys == 0 : empty_sets == 1;
  if (groups_nothing) {
    // The names are those of the output.
    const std::vector<Column> inner = Renamed(original.columns);
    for (Column& column : node->columns) {
      for (size_t i = 0; i < inner.size(); ++i) {
        if (original.columns[i].ref == column.ref) {
          column.ref = inner[i].ref;
          break;
        }
      }
    }
    node->inputs[0] = std::move(pushed.node);
    DeriveColumns(*node);
    pushed.node = std::move(node);
    for (size_t i = 0; i < outer_.size(); ++i) pushed.domain[i].nullable = true;
    return WithEmptyGroups(std::move(pushed), original);
  }
  node->inputs[0] = std::move(pushed.node);
  DeriveColumns(*node);
  // No set lacks a key of the domain either, but the columns do not say so.
  for (Column& column : pushed.domain) column.nullable = FindColumn(node->columns, column.ref)->nullable;
  pushed.node = std::move(node);
  return pushed;
}

/// Values of the domain without rows to aggregate still have a row.
absl::StatusOr<DomainPush::Pushed> DomainPush::WithEmptyGroups(Pushed grouped, const Node& original) {
  const Aggregate& aggregate = *original.As<Aggregate>();
  const size_t keys = aggregate.keys.size(), domain = outer_.size();
  std::vector<Column> inner = grouped.node->columns;
  inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(keys),
              inner.begin() + static_cast<std::ptrdiff_t>(keys + domain));
  Pushed pushed = Scan();
  std::vector<Expr> conditions = Alike(pushed.domain, grouped.domain);
  pushed.node =
      MakeJoin(JoinKind::kLeft, std::move(pushed.node), std::move(grouped.node), std::move(conditions));
  Project project;
  std::vector<Column> columns;
  for (size_t i = 0; i < original.columns.size(); ++i) {
    inner[i].nullable = true;
    columns.push_back(original.columns[i]);
    if (i >= keys + aggregate.aggregates.size()) {
      const size_t arguments = aggregate.groupings[i - keys - aggregate.aggregates.size()].keys.size();
      const int64_t all = (int64_t{1} << arguments) - 1;
      project.outputs.push_back(OrElse(MakeColumn(inner[i]), MakeLiteral(Value::Integer(all), -1)));
    } else if (i >= keys && Counts(aggregate.aggregates[i - keys].function)) {
      project.outputs.push_back(CountOrZero(inner[i]));
    } else {
      project.outputs.push_back(MakeColumn(inner[i]));
    }
  }
  for (const Column& column : pushed.domain) Keep(column, project, columns);
  pushed.node = MakeNode(std::move(project), std::move(columns), std::move(pushed.node));
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushWindow(NodePtr node) {
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0])));
  ReplaceIn(*node, pushed.domain);
  for (const Column& column : pushed.domain) node->As<Window>()->partition.push_back(MakeColumn(column));
  node->inputs[0] = std::move(pushed.node);
  DeriveColumns(*node);
  pushed.order.clear();
  pushed.node = std::move(node);
  return pushed;
}

/// Rows of all values of the domain come together: only a LIMIT's order counts.
absl::StatusOr<DomainPush::Pushed> DomainPush::PushSort(NodePtr node, bool want_order) {
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0])));
  if (!want_order) return pushed;
  ReplaceIn(*node, pushed.domain);
  pushed.order = std::move(node->As<Sort>()->keys);
  return pushed;
}

/// The first rows of each value of the domain are those with the first numbers.
absl::StatusOr<DomainPush::Pushed> DomainPush::PushLimit(NodePtr node, bool want_order) {
  const Limit limit = *node->As<Limit>();
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0]), true));
  Window window;
  for (const Column& column : pushed.domain) window.partition.push_back(MakeColumn(column));
  window.order = pushed.order;
  const int relation = query_.relations++;
  const auto place = [&](WindowFunction function, const char* name) {
    WindowCall call;
    call.function = function;
    call.result = {{relation, static_cast<int>(window.calls.size())}, name, Type::Integer(), false};
    window.calls.push_back(std::move(call));
    return MakeColumn(window.calls.back().result);
  };
  const auto compared = [](Op op, const Expr& place, __int128 with) {
    return plan::MakeNode(op, Type::Bool(), -1, {place, MakeLiteral(Value::Integer(with), -1)});
  };
  const Expr number = place(WindowFunction::kRowNumber, "row_number");
  std::vector<Expr> conditions;
  if (limit.offset > 0) conditions.push_back(compared(Op::kGreater, number, limit.offset));
  if (limit.rows.has_value()) {
    // A row equal to the last one has its rank or a lower one.
    const bool ties = !limit.ties.empty() && *limit.rows > 0;
    const Expr last_place = ties ? place(WindowFunction::kRank, "rank") : number;
    const __int128 last = static_cast<__int128>(limit.offset) + *limit.rows;
    conditions.push_back(compared(Op::kLessEqual, last_place, std::min<__int128>(last, INT64_MAX)));
  }
  pushed.node = MakeFilter(MakeNode(std::move(window), {}, std::move(pushed.node)), std::move(conditions));
  if (!want_order) pushed.order.clear();
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushDistinct(NodePtr node) {
  Distinct& distinct = *node->As<Distinct>();
  if (distinct.on.empty()) {
    for (const Column& column : node->columns) distinct.on.push_back(MakeColumn(column));
  }
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[0])));
  ReplaceIn(*node, pushed.domain);
  for (const Column& column : pushed.domain) distinct.on.push_back(MakeColumn(column));
  node->inputs[0] = std::move(pushed.node);
  DeriveColumns(*node);
  pushed.order.clear();
  pushed.node = std::move(node);
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushSetOperation(NodePtr node) {
  std::vector<Column> domain = Renamed(outer_);
  for (NodePtr& input : node->inputs) {
    const std::vector<Column> columns = input->columns;
    NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(input)));
    input = Trimmed(std::move(pushed), columns).node;
  }
  node->columns.insert(node->columns.end(), domain.begin(), domain.end());
  DeriveColumns(*node);
  Pushed pushed;
  pushed.domain.assign(node->columns.end() - static_cast<std::ptrdiff_t>(domain.size()), node->columns.end());
  pushed.node = std::move(node);
  return pushed;
}

absl::StatusOr<DomainPush::Pushed> DomainPush::PushWith(NodePtr node, bool want_order) {
  if (Correlated(node->input(0))) {
    const std::vector<Column> columns = node->input(0).columns;
    NAM_ASSIGN_OR_RETURN(Pushed definition, Push(std::move(node->inputs[0])));
    node->inputs[0] = Trimmed(std::move(definition), columns).node;
    std::vector<uint32_t>& places = correlated_[node->As<With>()->cte];
    for (size_t i = 0; i < outer_.size(); ++i) places.push_back(static_cast<uint32_t>(columns.size() + i));
  }
  NAM_ASSIGN_OR_RETURN(Pushed pushed, Push(std::move(node->inputs[1]), want_order));
  node->inputs[1] = std::move(pushed.node);
  DeriveColumns(*node);
  pushed.node = std::move(node);
  return pushed;
}

/// A CTE that was computed for the domain has its columns.
DomainPush::Pushed DomainPush::PushCteScan(NodePtr node) {
  CteScan& scan = *node->As<CteScan>();
  Pushed pushed;
  pushed.domain = Renamed(outer_);
  const std::vector<uint32_t>& places = correlated_.at(scan.cte);
  scan.fields.insert(scan.fields.end(), places.begin(), places.end());
  for (Column& column : pushed.domain) column.nullable = true;
  node->columns.insert(node->columns.end(), pushed.domain.begin(), pushed.domain.end());
  pushed.node = std::move(node);
  return pushed;
}

}  // namespace nam::optimizer
