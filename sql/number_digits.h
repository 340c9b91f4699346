#pragma once

#include "plan/aggregate.h"
#include "plan/expression.h"

/// Which results of decimals may have more than 38 digits, by what their operands are declared as. They are
/// numerics, whose scale yields. Where nothing is declared, as of `price * (1 - rate)`, the result stays a
/// decimal, and more than 38 digits are an error.
namespace nam::sql {

/// `a op b`, op being + - or *.
bool IsLongResult(plan::Op op, const plan::Expr& a, const plan::Expr& b);

/// sum or avg over many rows: logical::AggregateCall::long_sum.
bool IsLongSum(plan::AggregateFunction function, const plan::Expr& argument);

}  // namespace nam::sql
