#pragma once

#include <cstddef>

#include "plan/expression.h"

namespace nam::plan {

/// Same meaning by structure; positions do not count.
bool SameExpr(const Expr& a, const Expr& b);

/// No column, group or aggregate below.
bool IsConstant(const Expr& expr);

bool IsLiteral(const Expr& expr);
bool IsNullLiteral(const Expr& expr);
/// A boolean literal of this value.
bool IsBoolLiteral(const Expr& expr, bool value);
/// `a.x = b.y` of two tables.
bool EquatesTables(const Expr& expr);

size_t CountNodes(const Expr& expr);

Expr MakeLiteral(Value value, int position);
Expr MakeNode(Op op, Type type, int position, std::vector<Expr> children);

/// `=`, `AND`, … for operators that are written between operands.
const char* Symbol(Op op);

}  // namespace nam::plan
