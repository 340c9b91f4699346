#include "plan/logical.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"

namespace nam::plan::logical {
namespace {

void Append(std::vector<Column>& to, const std::vector<Column>& from, bool filled_with_nulls = false) {
  for (const Column& column : from) {
    to.push_back(column);
    if (filled_with_nulls) to.back().nullable = true;
  }
}

void DeriveJoin(Node& node, const Join& join) {
  const JoinKind kind = join.kind;
  node.columns.clear();
  Append(node.columns, node.input(0).columns, kind == JoinKind::kRight || kind == JoinKind::kFull);
  switch (kind) {
    case JoinKind::kSemi:
    case JoinKind::kAnti:
    case JoinKind::kNullAwareAnti:
      return;
    case JoinKind::kMark:
      node.columns.push_back({join.mark, "mark", Type::Bool(), !join.compared.empty()});
      return;
    default:
      Append(node.columns, node.input(1).columns, kind != JoinKind::kInner && kind != JoinKind::kRight);
  }
}

void DeriveAggregate(Node& node, const Aggregate& aggregate) {
  const std::vector<Column>& input = node.input().columns;
  for (size_t i = 0; i < aggregate.keys.size(); ++i) {
    node.columns[i].nullable = !aggregate.sets.empty() || MayBeNull(aggregate.keys[i], input);
  }
  for (size_t i = 0; i < aggregate.aggregates.size(); ++i) {
    const AggregateFunction function = aggregate.aggregates[i].function;
    node.columns[aggregate.keys.size() + i].nullable =
        function != AggregateFunction::kCountRows && function != AggregateFunction::kCount;
  }
  for (size_t i = aggregate.keys.size() + aggregate.aggregates.size(); i < node.columns.size(); ++i)
    node.columns[i].nullable = false;
}

void DeriveWindow(Node& node, const Window& window) {
  node.columns = node.input().columns;
  for (const WindowCall& call : window.calls) {
    node.columns.push_back(call.result);
    const bool ranks =
        call.function >= WindowFunction::kRowNumber && call.function <= WindowFunction::kDenseRank;
    const AggregateFunction function = call.aggregate.function;
    const bool counts = call.function == WindowFunction::kAggregate &&
                        (function == AggregateFunction::kCount || function == AggregateFunction::kCountRows);
    node.columns.back().nullable = !ranks && !counts;
  }
}

void DeriveSetOperation(Node& node, const SetOperation& operation) {
  for (size_t i = 0; i < node.columns.size(); ++i) {
    const auto nullable = [&](const NodePtr& input) { return input->columns[i].nullable; };
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), nullable);
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(), nullable);
    node.columns[i].nullable = operation.kind == SetOperation::Kind::kUnion       ? any
                               : operation.kind == SetOperation::Kind::kIntersect ? all
                                                                                  : nullable(node.inputs[0]);
  }
}

}  // namespace

void DeriveColumns(Node& node) {
  if (const auto* join = node.As<Join>()) return DeriveJoin(node, *join);
  if (const auto* window = node.As<Window>()) return DeriveWindow(node, *window);
  if (const auto* aggregate = node.As<Aggregate>()) return DeriveAggregate(node, *aggregate);
  if (const auto* operation = node.As<SetOperation>()) return DeriveSetOperation(node, *operation);
  if (node.As<With>() != nullptr) {
    node.columns = node.input(1).columns;
    return;
  }
  if (const auto* project = node.As<Project>()) {
    for (size_t i = 0; i < node.columns.size(); ++i)
      node.columns[i].nullable = MayBeNull(project->outputs[i], node.input().columns);
    return;
  }
  if (node.inputs.size() == 1) node.columns = node.input().columns;
  if (const auto* series = node.As<Series>()) {
    node.columns.push_back(series->result);
    node.columns.back().nullable = false;
  }
}

void DeriveAllColumns(Node& root) {
  for (NodePtr& input : root.inputs) DeriveAllColumns(*input);
  DeriveColumns(root);
}

NodePtr MakeNode(Operator op, std::vector<Column> columns, NodePtr a, NodePtr b) {
  auto node = std::make_unique<Node>();
  node->op = std::move(op);
  node->columns = std::move(columns);
  if (a != nullptr) node->inputs.push_back(std::move(a));
  if (b != nullptr) node->inputs.push_back(std::move(b));
  DeriveColumns(*node);
  return node;
}

NodePtr MakeFilter(NodePtr input, std::vector<Expr> conditions) {
  if (conditions.empty()) return input;
  return MakeNode(Filter{std::move(conditions)}, {}, std::move(input));
}

NodePtr MakeJoin(JoinKind kind, NodePtr left, NodePtr right, std::vector<Expr> conditions) {
  Join join;
  join.kind = kind;
  join.conditions = std::move(conditions);
  return MakeNode(std::move(join), {}, std::move(left), std::move(right));
}

NodePtr MakeOneRow() {
  return MakeNode(Values{{{}}}, {});
}

Expr MakeColumn(const Column& column, int position) {
  Expr expr;
  expr.op = Op::kColumn;
  expr.type = column.type;
  expr.column = column.ref;
  expr.position = position;
  expr.declared = column.declared;
  return expr;
}

Expr MakeNotDistinct(const Expr& a, bool a_nullable, const Expr& b, bool b_nullable) {
  Expr equal = plan::MakeNode(Op::kEqual, Type::Bool(), a.position, {a, b});
  if (!a_nullable || !b_nullable) return equal;
  Expr both = plan::MakeNode(Op::kAnd, Type::Bool(), a.position,
                             {plan::MakeNode(Op::kIsNull, Type::Bool(), a.position, {a}),
                              plan::MakeNode(Op::kIsNull, Type::Bool(), a.position, {b})});
  return plan::MakeNode(Op::kOr, Type::Bool(), a.position, {std::move(equal), std::move(both)});
}

std::optional<std::pair<const Expr*, const Expr*>> NotDistinctSides(const Expr& expr) {
  if (expr.op != Op::kOr || expr.children.size() != 2) return std::nullopt;
  const Expr &equal = expr.children[0], &both = expr.children[1];
  if (equal.op != Op::kEqual || both.op != Op::kAnd || both.children.size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Expr& test = both.children[i];
    if (test.op != Op::kIsNull || !SameExpr(test.children[0], equal.children[i])) return std::nullopt;
  }
  return std::pair(&equal.children[0], &equal.children[1]);
}

// ─── Reading

namespace {

template <typename List, typename Visit>
void VisitAll(List& list, const Visit& visit) {
  for (auto& expr : list) visit(expr);
}

template <typename Call, typename Visit>
void VisitAggregate(Call& call, const Visit& visit) {
  if (ArgumentsOf(call.function) > 0) visit(call.argument);
  if (ArgumentsOf(call.function) > 1) visit(call.second);
  if (call.filter.has_value()) visit(*call.filter);
}

/// One body for constant nodes and others.
template <typename NodeType, typename Visit>
void VisitExpressions(NodeType& node, const Visit& visit) {
  const auto keys = [&](auto& list) {
    for (auto& key : list) visit(key.expr);
  };
  std::visit(
      [&](auto& op) {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, Filter>) {
          VisitAll(op.conditions, visit);
        } else if constexpr (std::is_same_v<Op, Project>) {
          VisitAll(op.outputs, visit);
        } else if constexpr (std::is_same_v<Op, Join>) {
          VisitAll(op.conditions, visit);
          VisitAll(op.compared, visit);
        } else if constexpr (std::is_same_v<Op, Aggregate>) {
          VisitAll(op.keys, visit);
          for (auto& call : op.aggregates) VisitAggregate(call, visit);
        } else if constexpr (std::is_same_v<Op, Window>) {
          VisitAll(op.partition, visit);
          keys(op.order);
          for (auto& call : op.calls) {
            VisitAll(call.arguments, visit);
            if (call.function == WindowFunction::kAggregate) VisitAggregate(call.aggregate, visit);
          }
        } else if constexpr (std::is_same_v<Op, Sort>) {
          keys(op.keys);
        } else if constexpr (std::is_same_v<Op, Limit>) {
          VisitAll(op.ties, visit);
        } else if constexpr (std::is_same_v<Op, Series>) {
          visit(op.first);
          visit(op.last);
          visit(op.step);
        } else if constexpr (std::is_same_v<Op, Distinct>) {
          VisitAll(op.on, visit);
          keys(op.order);
        }
      },
      node.op);
}

void AddNamed(const Expr& expr, ColumnSet& names) {
  if (expr.op == Op::kColumn) names.insert(expr.column);
  for (const Expr& child : expr.children) AddNamed(child, names);
}

}  // namespace

void ForExpressions(Node& node, const VisitExpr& visit) {
  VisitExpressions(node, visit);
}

void ForExpressions(const Node& node, const VisitConstExpr& visit) {
  VisitExpressions(node, visit);
}

ColumnSet ColumnsIn(const Node& node) {
  ColumnSet columns;
  for (const Column& column : node.columns) columns.insert(column.ref);
  return columns;
}

ColumnSet FreeColumns(const Node& root) {
  ColumnSet free;
  ForExpressions(root, [&](const Expr& expr) { AddNamed(expr, free); });
  for (const NodePtr& input : root.inputs) {
    for (const Column& column : input->columns) free.erase(column.ref);
  }
  const auto* join = root.As<Join>();
  for (size_t i = 0; i < root.inputs.size(); ++i) {
    ColumnSet below = FreeColumns(*root.inputs[i]);
    if (i == 1 && join != nullptr && join->dependent) {
      for (const Column& column : root.input(0).columns) below.erase(column.ref);
    }
    free.merge(below);
  }
  return free;
}

bool Names(const Expr& expr, const ColumnSet& columns) {
  if (expr.op == Op::kColumn) return columns.count(expr.column) > 0;
  return std::any_of(expr.children.begin(), expr.children.end(),
                     [&](const Expr& child) { return Names(child, columns); });
}

const Column* FindColumn(const std::vector<Column>& columns, ColumnRef ref) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.ref == ref; });
  return found == columns.end() ? nullptr : &*found;
}

bool MayBeNull(const Expr& expr, const std::vector<Column>& columns) {
  const auto any = [&](size_t from, size_t step) {
    for (size_t i = from; i < expr.children.size(); i += step) {
      if (MayBeNull(expr.children[i], columns)) return true;
    }
    return false;
  };
  if (expr.op == Op::kLiteral) return expr.literal.null;
  if (expr.op == Op::kIsNull) return false;
  if (expr.op == Op::kColumn) {
    const Column* column = FindColumn(columns, expr.column);
    return column == nullptr || column->nullable;
  }
  if (expr.op == Op::kCase) return any(1, 2) || MayBeNull(expr.children.back(), columns);
  if (expr.op >= Op::kAdd && expr.op <= Op::kCast) return any(0, 1);
  return true;
}

std::vector<Expr> Conjuncts(std::vector<Expr> conditions) {
  std::vector<Expr> split;
  for (Expr& condition : conditions) {
    if (IsBoolLiteral(condition, true)) continue;
    if (condition.op == Op::kAnd) {
      for (Expr& part : Conjuncts(std::move(condition.children))) split.push_back(std::move(part));
    } else if (IsNullLiteral(condition)) {
      split.push_back(MakeLiteral(Value::Bool(false), condition.position));
    } else {
      split.push_back(std::move(condition));
    }
  }
  return split;
}

std::vector<Expr> Conjuncts(Expr condition) {
  std::vector<Expr> conditions;
  conditions.push_back(std::move(condition));
  return Conjuncts(std::move(conditions));
}

Expr Conjunction(std::vector<Expr> conditions) {
  if (conditions.empty()) return MakeLiteral(Value::Bool(true), -1);
  if (conditions.size() == 1) return std::move(conditions[0]);
  const int position = conditions[0].position;
  return plan::MakeNode(Op::kAnd, Type::Bool(), position, std::move(conditions));
}

NodePtr Clone(const Node& root) {
  auto copy = std::make_unique<Node>();
  copy->op = root.op;
  copy->columns = root.columns;
  for (const NodePtr& input : root.inputs) copy->inputs.push_back(Clone(*input));
  return copy;
}

}  // namespace nam::plan::logical
