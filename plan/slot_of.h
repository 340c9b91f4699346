#pragma once

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "plan/schema.h"

namespace nam::plan {

/// What an expression yields over rows of a schema: its type, whether it may be NULL, and bounds of its
/// numbers. Whatever Evaluate returns for a row within the schema's bounds is within those of the result.
///
/// Checks the expression on the way, so that it comes from anywhere: INVALID_ARGUMENT if an operator has
/// operands that it does not take, if a column is no slot of the schema or has another type than the slot, if
/// a literal is no value of its type; 54001 if it is too deep. Nothing is converted silently.
absl::StatusOr<Slot> SlotOf(const Expr& expr, const Schema& input);

/// Whether values can have this type: it has a kind with values, and nothing that its kind does not have.
bool IsValueType(const Type& type);
/// Whether the value is one of the type: of its kind and scale, and within what the kind can hold. NULL is.
bool IsValueOf(const Value& value, const Type& type);
/// Whether bounds of the type's values mean something: numbers, dates and timestamps.
bool HasBounds(const Type& type);

/// The slot as an expression.
Expr SlotExpr(const Schema& schema, uint32_t slot);
/// All slots.
std::vector<Expr> SlotExprs(const Schema& schema);

}  // namespace nam::plan
