#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/value.h"

namespace nam::sql {

/// A column of the query: position of its table in BoundQuery::tables, and of itself in that table.
struct ColumnRef {
  int table = -1;
  int column = -1;
  auto operator<=>(const ColumnRef&) const = default;
};

enum class Op : uint8_t {
  kColumn,   // column
  kLiteral,  // literal
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,  // [a, b]
  kNegate,  // [a]
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,  // [a, b]
  kAnd,
  kOr,      // [a, b, …] two or more
  kNot,     // [a]
  kIsNull,  // [a]; IS NOT NULL is kNot over it
  kIn,      // [a, literal, literal, …], literals of a's type; NOT IN is kNot over it
  kLike,    // [a], pattern in literal; NOT LIKE is kNot over it
  kCase,    // [when, then, when, then, …, else]; always with an else (a null literal if none)
  kCast,    // [a] to `type`
  kExtractYear,
  kExtractMonth,
  kExtractDay,  // [date]
  kGroup,       // after aggregation only: value of BoundQuery::group_by[index]
  kAggregate,   // after aggregation only: value of BoundQuery::aggregates[index]
};

/// A typed expression. The binder guarantees: operands of comparisons and of IN are of one kind (all
/// strings, all dates, all booleans, or numbers of any scales); operands of arithmetic are numbers
/// (or date ± integer giving a date, date - date giving an integer); nothing else is converted silently.
///
/// Arithmetic, in exact decimals: + and - have the larger scale; * adds the scales; / of two integers
/// truncates towards zero; / with a decimal has scale max(sa, sb, 6), rounded half away from zero; % of
/// integers has the sign of the left side. Division by zero and results beyond 38 digits are errors.
struct Expr {
  Op op = Op::kLiteral;
  Type type;
  int position = -1;  // byte offset in the statement, for messages
  ColumnRef column;
  int index = -1;
  Value literal;
  std::vector<Expr> children;
};

/// Reads the value of a kColumn, kGroup or kAggregate node.
using Resolver = std::function<Value(const Expr&)>;

/// Evaluates row by row with SQL's three-valued logic: after aggregation, for constants, and as the
/// reference for the vectorized evaluator. OUT_OF_RANGE on overflow, INVALID_ARGUMENT on division by zero.
absl::StatusOr<Value> Evaluate(const Expr& expr, const Resolver& resolve);

/// SQL LIKE by characters' bytes: % any run, _ any one byte, \ escapes.
bool MatchesLike(std::string_view text, std::string_view pattern);

/// As SQL text, for EXPLAIN. `name` prints column references.
std::string ToString(const Expr& expr, const std::function<std::string(const Expr&)>& name);

/// Every kColumn below, in order of first occurrence, without repeats.
std::vector<ColumnRef> ColumnsOf(const Expr& expr);

}  // namespace nam::sql
