#pragma once

#include <cstddef>

#include "plan/expression.h"

namespace nam::plan {

/// Whether both have the same structure; positions are ignored.
bool SameExpr(const Expr& a, const Expr& b);

/// Whether no column, group or aggregate is below.
bool IsConstant(const Expr& expr);

bool IsLiteral(const Expr& expr);
bool IsNullLiteral(const Expr& expr);
/// A boolean literal of this value.
bool IsBoolLiteral(const Expr& expr, bool value);
/// `a.x = b.y` of two tables.
bool EquatesTables(const Expr& expr);

size_t CountNodes(const Expr& expr);

/// For an expression whose text is not in the statement.
void ForgetPositions(Expr& expr);

Expr MakeLiteral(Value value, int position);
Expr MakeNode(Op op, Type type, int position, std::vector<Expr> children);

/// `=`, `AND`, … for infix operators.
const char* Symbol(Op op);

}  // namespace nam::plan
