#include "sql/number_digits.h"

#include <algorithm>

#include "sql/declared_type.h"
#include "types/decimal.h"
#include "types/numeric.h"

namespace nam::sql {
namespace {

using plan::AggregateFunction;
using plan::Expr;
using plan::Op;

constexpr int kMostKnownDigits = 1000;
/// A hundred million of the greatest numbers of so many digits have a sum of 38.
constexpr int kDigitsOfSummands = 30;
/// With fewer decimals a numeric, which has 36 digits, reaches no further than a decimal.
constexpr int kFewestDecimals = kMaxDecimalDigits - kMaxNumericDigits + 1;

/// The most digits of a number, if its value or what it is declared as tells them; otherwise 0.
int DigitsOf(const Expr& e) {
  if (IsLiteral(e)) {
    int digits = 1;
    while (digits < kMaxDecimalDigits && !plan::FitsDigits(e.literal.number, digits)) ++digits;
    return digits;
  }
  if (e.op == Op::kMultiply && e.type.numeric()) {
    const int a = DigitsOf(e.children[0]), b = DigitsOf(e.children[1]);
    return a == 0 || b == 0 ? 0 : std::min(a + b, kMostKnownDigits);
  }
  const SqlType declared = DeclaredType(e);
  if (declared == SqlType::SmallInt()) return 5;
  if (declared == SqlType::Integer()) return 10;
  if (declared == SqlType::BigInt()) return 19;
  return declared.numeric() && declared.modifier > 0 ? (declared.modifier - 4) >> 16 : 0;
}

bool IsLongProduct(const Expr& a, const Expr& b) {
  const int of_a = DigitsOf(a), of_b = DigitsOf(b);
  return a.type.scale + b.type.scale > kMaxDecimalDigits ||
         (of_a > 0 && of_b > 0 && of_a + of_b > kMaxDecimalDigits);
}

/// As DigitsOf, also of sums and differences. Products of these stay unknown: they would be long too often.
int DigitsOfSum(const Expr& e) {
  if (e.op == Op::kNegate) return DigitsOfSum(e.children[0]);
  if ((e.op != Op::kAdd && e.op != Op::kSubtract) || e.type.kind != TypeKind::kDecimal) return DigitsOf(e);
  int whole = 0;
  for (const Expr& child : e.children) {
    const int digits = DigitsOfSum(child);
    if (digits == 0) return 0;
    whole = std::max(whole, digits - child.type.scale);
  }
  return std::min(whole + 1 + e.type.scale, kMostKnownDigits);
}

bool IsLongAddition(const Expr& a, const Expr& b) {
  const int scale = std::max(a.type.scale, b.type.scale);
  if (scale < kFewestDecimals) return false;
  const int of_a = DigitsOfSum(a), of_b = DigitsOfSum(b);
  if (of_a == 0 || of_b == 0) return false;
  const int whole = std::max(of_a - a.type.scale, of_b - b.type.scale);
  return whole + 1 + scale > kMaxDecimalDigits;
}

/// Constants tell their result.
bool IsLongConstant(Op op, const Expr& a, const Expr& b) {
  const int scale_a = a.type.scale, scale_b = b.type.scale;
  const __int128 left = a.literal.number, right = b.literal.number;
  if (op == Op::kMultiply)
    return scale_a + scale_b > kMaxDecimalDigits || !MultiplyDecimals(left, right).has_value();
  const bool adds = op == Op::kAdd || op == Op::kSubtract;
  return adds && std::max(scale_a, scale_b) >= kFewestDecimals &&
         !AddDecimals(left, scale_a, op == Op::kAdd ? right : -right, scale_b).has_value();
}

}  // namespace

bool IsLongResult(Op op, const Expr& a, const Expr& b) {
  if (a.type.kind != TypeKind::kDecimal && b.type.kind != TypeKind::kDecimal) return false;
  if (!a.type.numeric() || !b.type.numeric()) return false;
  if (IsLiteral(a) && IsLiteral(b) && !a.literal.null && !b.literal.null) return IsLongConstant(op, a, b);
  if (op == Op::kMultiply) return IsLongProduct(a, b);
  return (op == Op::kAdd || op == Op::kSubtract) && IsLongAddition(a, b);
}

bool IsLongSum(AggregateFunction function, const Expr& argument) {
  if (argument.type.kind != TypeKind::kDecimal || DigitsOfSum(argument) <= kDigitsOfSummands) return false;
  return function == AggregateFunction::kAverage ||
         (function == AggregateFunction::kSum && argument.type.scale >= kFewestDecimals);
}

}  // namespace nam::sql
