#include "plan/expression_tree.h"

#include <algorithm>

namespace nam::plan {

bool SameExpr(const Expr& a, const Expr& b) {
  if (a.op != b.op || !(a.type == b.type) || a.column != b.column || a.index != b.index) return false;
  if (a.children.size() != b.children.size()) return false;
  if (a.op == Op::kLiteral || a.op == Op::kLike) {
    const Value &x = a.literal, &y = b.literal;
    if (!(x.type == y.type) || x.null != y.null) return false;
    if (!x.null && (x.number != y.number || x.text != y.text)) return false;
  }
  return std::equal(a.children.begin(), a.children.end(), b.children.begin(), SameExpr);
}

bool IsConstant(const Expr& expr) {
  if (expr.op == Op::kColumn) return false;
  return std::all_of(expr.children.begin(), expr.children.end(), IsConstant);
}

bool IsLiteral(const Expr& expr) {
  return expr.op == Op::kLiteral;
}

bool IsNullLiteral(const Expr& expr) {
  return expr.op == Op::kLiteral && expr.literal.null;
}

bool IsBoolLiteral(const Expr& expr, bool value) {
  return expr.op == Op::kLiteral && expr.type.kind == TypeKind::kBool && !expr.literal.null &&
         (expr.literal.number != 0) == value;
}

bool EquatesTables(const Expr& expr) {
  // Equal packed values may have different bits: no join compares them.
  return expr.op == Op::kEqual && expr.children[0].op == Op::kColumn && expr.children[1].op == Op::kColumn &&
         !expr.children[0].type.packed() && expr.children[0].column.table != expr.children[1].column.table;
}

size_t CountNodes(const Expr& expr) {
  size_t nodes = 1;
  for (const Expr& child : expr.children) nodes += CountNodes(child);
  return nodes;
}

void ForgetPositions(Expr& expr) {
  expr.position = -1;
  for (Expr& child : expr.children) ForgetPositions(child);
}

Expr MakeLiteral(Value value, int position) {
  Expr expr;
  expr.type = value.type;
  expr.position = position;
  expr.literal = std::move(value);
  return expr;
}

Expr MakeNode(Op op, Type type, int position, std::vector<Expr> children) {
  Expr expr;
  expr.op = op;
  expr.type = type;
  expr.position = position;
  expr.children = std::move(children);
  return expr;
}

const char* Symbol(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSubtract:
      return "-";
    case Op::kMultiply:
      return "*";
    case Op::kDivide:
      return "/";
    case Op::kModulo:
      return "%";
    case Op::kEqual:
      return "=";
    case Op::kNotEqual:
      return "<>";
    case Op::kLess:
      return "<";
    case Op::kLessEqual:
      return "<=";
    case Op::kGreater:
      return ">";
    case Op::kGreaterEqual:
      return ">=";
    case Op::kAnd:
      return "AND";
    case Op::kOr:
      return "OR";
    default:
      return "?";
  }
}

namespace {

void CollectColumns(const Expr& expr, std::vector<ColumnRef>* columns) {
  if (expr.op == Op::kColumn && std::find(columns->begin(), columns->end(), expr.column) == columns->end()) {
    columns->push_back(expr.column);
  }
  for (const Expr& child : expr.children) CollectColumns(child, columns);
}

}  // namespace

std::vector<ColumnRef> ColumnsOf(const Expr& expr) {
  std::vector<ColumnRef> columns;
  CollectColumns(expr, &columns);
  return columns;
}

}  // namespace nam::plan
