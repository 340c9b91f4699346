#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/expression.h"

/// Maps names of columns to slots of a flow.
namespace nam::optimizer {

/// The column in each slot.
using Layout = std::vector<plan::ColumnRef>;
using ColumnSet = std::set<plan::ColumnRef>;

/// The slots with wanted columns; ascending.
std::vector<uint32_t> SlotsWhere(const Layout& layout, const ColumnSet& wanted);
std::vector<uint32_t> FirstNumbers(size_t n);

/// The same over slots. INVALID_ARGUMENT if a column has no slot, 54001 if the expression is too deep: the
/// user's text reaches recursion only after this.
absl::StatusOr<plan::Expr> OverSlots(const plan::Expr& expr, const Layout& layout);
absl::StatusOr<std::vector<plan::Expr>> OverSlots(const std::vector<plan::Expr>& exprs, const Layout& layout);

/// Adds the expression's columns, at any depth.
void AddColumns(const plan::Expr& expr, ColumnSet& columns);
void AddColumns(const std::vector<plan::Expr>& exprs, ColumnSet& columns);

}  // namespace nam::optimizer
