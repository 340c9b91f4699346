#pragma once

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "plan/schema.h"

namespace nam::plan {

/// Describes an expression's result over rows of a schema: its type, whether it may be NULL, and bounds of
/// its numbers. What Evaluate returns for a row within the schema's bounds is within those of the result.
///
/// Checks the expression, which may come from anywhere: INVALID_ARGUMENT if an operator has operands that it
/// does not take, if a column is no slot of the schema or has another type than the slot, or if a literal is
/// no value of its type; 54001 if it is too deep. There are no implicit conversions.
absl::StatusOr<Slot> SlotOf(const Expr& expr, const Schema& input);

/// Whether values can have this type: its kind has values, and its other fields fit the kind.
bool IsValueType(const Type& type);
/// Whether the value is of the type: of its kind and scale, and within its range. NULL is.
bool IsValueOf(const Value& value, const Type& type);
/// Whether the type's values have bounds: numbers, dates and timestamps.
bool HasBounds(const Type& type);

/// The slot as an expression.
Expr SlotExpr(const Schema& schema, uint32_t slot);
/// All slots.
std::vector<Expr> SlotExprs(const Schema& schema);

}  // namespace nam::plan
