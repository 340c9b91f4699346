#pragma once

#include <optional>
#include <vector>

#include "plan/expression.h"
#include "plan/logical.h"

/// Conditions of the form `a AND b OR c AND d`, whose alternatives each name several tables. Unchanged they
/// would be checked only after all of these are joined, and no equality in them would be a join key.
namespace nam::optimizer {

/// Whether the expression is an error for some rows. Sums and products exceed 38 digits too rarely to count.
bool MayFail(const plan::Expr& expr);

/// Whether it reads columns, and only these.
bool IsConditionOn(const std::vector<plan::logical::Column>& columns, const plan::Expr& condition);

/// Moves conditions that alternatives share out of these: `a AND b OR a AND c` becomes `a` and `b OR c`. The
/// rows stay the same.
void FactorAlternatives(std::vector<plan::Expr>& conditions);

/// The condition's consequence for these columns alone, if each of its alternatives has one: `x = 1 AND y = 2
/// OR x = 3` implies `x = 1 OR x = 3` for x. The condition must still be checked.
std::optional<plan::Expr> ImpliedOn(const std::vector<plan::logical::Column>& columns,
                                    const plan::Expr& condition);

}  // namespace nam::optimizer
