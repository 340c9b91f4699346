#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "types/sql_type.h"
#include "types/value.h"

namespace nam::plan {

/// A column: the number of its relation, and its place there. In a physical plan {0, slot}.
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
  kOr,      // [a, b, …], at least two
  kNot,     // [a]
  kIsNull,  // [a]; IS NOT NULL is kNot over it
  kIn,      // [a, literal, literal, …], literals of a's type; NOT IN is kNot over it
  kLike,    // [a], pattern in literal; NOT LIKE is kNot over it
  kCase,    // [when, then, when, then, …, else]; always with an else (a null literal if none)
  kCast,    // [a] to `type`; to an integer: of `index` bytes
  kExtractYear,
  kExtractMonth,
  kExtractDay,  // [date]
  kFunction,    // [a, b, …]: function number `index` (plan/function.h)
};

/// A typed expression. The binder guarantees: operands of comparisons and of IN are of one kind (all strings,
/// all dates, all booleans, all double precision, all numerics, or integers and decimals of any scales);
/// operands of arithmetic are integers and decimals, or numerics, double precision and real as the result (or
/// date ± integer giving a date, date - date giving an integer). There are no implicit conversions.
///
/// Arithmetic, in exact decimals: + and - have the larger scale; * adds the scales; / of two integers
/// truncates towards zero; % of integers has the sign of the left side; there is no / or % of decimals.
/// Division by zero and results beyond 38 digits are errors, and so are dates outside of years 1 to 9999 and
/// casts to an integer type that the number does not fit. Arithmetic of numerics (both sides and the result)
/// has PostgreSQL's scales: types/numeric.h.
struct Expr {
  Op op = Op::kLiteral;
  Type type;
  int position = -1;  // byte offset in the statement, for messages
  ColumnRef column;
  /// kFunction: its number; kCast to an integer: 2, 4 or 8 bytes, -1 for 8; kCast to a decimal: its digits,
  /// -1 for 38.
  int index = -1;
  Value literal;
  std::vector<Expr> children;
  /// What PostgreSQL would declare, where `type` does not tell (sql/declared_type.h). The binder's: it
  /// chooses operators, and the types of results. No part of what an expression computes: neither sent nor
  /// compared.
  SqlType declared;
};

/// For a kCast to an integer: the bytes of the type.
inline int IntegerBytes(const Expr& cast) {
  return cast.index > 0 ? cast.index : 8;
}
inline bool FitsInteger(__int128 n, int bytes) {
  const __int128 limit = __int128{1} << (8 * bytes - 1);
  return n >= -limit && n < limit;
}

/// For a kCast to a decimal: the digits of the type.
inline int DecimalDigits(const Expr& cast) {
  return cast.index > 0 ? cast.index : kMaxDecimalDigits;
}
/// Whether n has at most so many digits.
inline bool FitsDigits(__int128 n, int digits) {
  const __int128 limit = PowerOfTen(digits);
  return n > -limit && n < limit;
}

inline constexpr Type CharType(uint32_t length) {
  return {.kind = TypeKind::kString, .blank_padded = true, .length = length};
}
inline constexpr bool IsChar(const Type& type) {
  return type.blank_padded;
}

/// Whether comparisons of these types ignore trailing blanks, as those of char(n) do. Values of char(n) never
/// end in blanks: columns do not store them, and literals that become char(n) lose them. So char(n) compares,
/// groups, sorts and joins by its bytes. Compared with varchar(n), the trailing blanks of both are ignored;
/// compared with text they count, as in PostgreSQL.
inline bool IgnoresBlanks(const Type& a, const Type& b) {
  const auto sized = [](const Type& type) { return IsChar(type) || type.length > 0; };
  return (IsChar(a) || IsChar(b)) && sized(a) && sized(b);
}
inline std::string_view WithoutBlanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// Reads the value of a kColumn node.
using Resolver = std::function<Value(const Expr&)>;

/// Evaluates row by row with SQL's three-valued logic: for constants, and as the reference for the vectorized
/// evaluator. OUT_OF_RANGE on overflow, INVALID_ARGUMENT on division by zero.
absl::StatusOr<Value> Evaluate(const Expr& expr, const Resolver& resolve);

/// SQL LIKE over UTF-8: % any run, _ any one character, \ escapes.
bool MatchesLike(std::string_view text, std::string_view pattern);

/// SQL text, for EXPLAIN. `name` prints column references.
std::string ToString(const Expr& expr, const std::function<std::string(const Expr&)>& name);

/// Every kColumn below, in order of first occurrence, without repeats.
std::vector<ColumnRef> ColumnsOf(const Expr& expr);

}  // namespace nam::plan
