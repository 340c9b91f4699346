#pragma once

#include <vector>

#include "plan/expression.h"
#include "tests/execution/expression/random_columns.h"

namespace nam::testing {

/// Makes expressions as the binder makes them.
class RandomExpression {
 public:
  RandomExpression(Random& random, const std::vector<RandomSlot>& slots) : random_(random), slots_(slots) {}

  plan::Expr Any(int depth);
  plan::Expr Bool(int depth);
  plan::Expr Number(int depth);
  plan::Expr Integer(int depth);
  plan::Expr Text(int depth);
  plan::Expr Date(int depth);
  plan::Expr Timestamp(int depth);
  plan::Expr Double(int depth);
  plan::Expr Interval(int depth);
  plan::Expr OwnScale(int depth);
  plan::Expr Uuid(int depth);
  plan::Expr Bytes(int depth);
  plan::Expr TimestampTz(int depth);
  plan::Expr Time(int depth);
  /// A call of a function whose signature has this result's letter.
  plan::Expr Call(char result, int depth);
  /// A boolean about this slot alone.
  plan::Expr About(uint32_t slot, int depth);

 private:
  using Maker = plan::Expr (RandomExpression::*)(int);
  /// A slot of the kind, or a literal.
  plan::Expr Leaf(TypeKind kind);
  plan::Expr Operand(char letter, int depth);
  plan::Expr Literal(TypeKind kind);
  plan::Expr Case(Maker branch, int depth);
  plan::Expr Arithmetic(int depth);
  plan::Expr Comparison(int depth);
  plan::Expr In(int depth);

  Random& random_;
  const std::vector<RandomSlot>& slots_;
  int only_ = -1;  // the slot that all leaves use
};

}  // namespace nam::testing
