#pragma once

#include <optional>
#include <vector>

#include "plan/expression.h"
#include "plan/logical.h"

/// Conditions of the form `a AND b OR c AND d`, of which each alternative names several tables. As they are
/// they would be checked only once all of these are joined, and no equality in them would be the key of a
/// join.
namespace nam::optimizer {

/// Of some rows it is an error. Sums and products leave 38 digits too rarely to count.
bool MayFail(const plan::Expr& expr);

/// Replaces alternatives that have conditions in common by these and the rest: `a AND b OR a AND c` by `a`
/// and `b OR c`. The rows stay.
void FactorAlternatives(std::vector<plan::Expr>& conditions);

/// What a condition says of these columns alone, if each of its alternatives says something: `x = 1 AND y = 2
/// OR x = 3` of x is `x = 1 OR x = 3`. It follows from the condition, which is still to be checked.
std::optional<plan::Expr> ImpliedOn(const std::vector<plan::logical::Column>& columns,
                                    const plan::Expr& condition);

}  // namespace nam::optimizer
