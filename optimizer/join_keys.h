#pragma once

#include <optional>
#include <vector>

#include "optimizer/cardinality.h"
#include "optimizer/slots.h"

namespace nam::optimizer {

/// A join's conditions by their use.
struct JoinKeys {
  std::vector<plan::Expr> left, right;  // pairs have one type kind and scale
  std::vector<plan::Expr> residuals;
};

/// Whether both sides of a = b can get equal bytes, for keys of a build.
bool CanBeKey(const Type& a, const Type& b);

/// a IS NOT DISTINCT FROM b as equalities that are never NULL: of a replacement for NULL, and of whether it
/// is NULL. Any other condition as it is.
std::vector<plan::Expr> EqualitiesOf(const plan::Expr& condition);

/// Makes keys of the equalities that have a side in each input. Equalities whose numbers do not fit the
/// larger scale are keys at the smaller one, where equal numbers stay equal, and residuals. `unique`: the
/// first equality with a unique column of the right input's table is the only key.
JoinKeys JoinKeysOf(const std::vector<plan::Expr>& conditions, const ColumnSet& left, const ColumnSet& right,
                    const Cardinalities& cardinalities, bool unique = false);

}  // namespace nam::optimizer
