#pragma once

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Removes all dependent joins: afterwards no part of the tree is correlated with another one
/// (plan::logical::CheckTree with `unnested`). The result's rows, their columns and their order stay.
///
/// Common forms become plain joins: correlated conditions move up into the join, scalar aggregates are
/// grouped by their correlated columns, and EXISTS and IN that filter rows become semi and anti joins.
/// Otherwise the dependent join moves down, by Neumann and Kemper ("Unnesting Arbitrary Queries", BTW 2015):
/// the right input is computed once for the domain, which is each combination of correlated values that
/// occurs on the left; the join then compares with these values. The left input is a CTE then, as both the
/// join and the domain read it.
///
/// The binder admits neither recursive queries nor functions whose value changes between calls, which this
/// could not treat. An error of a subquery that only some rows would have evaluated may be raised for all.
absl::Status Unnest(plan::logical::Query& query);

}  // namespace nam::optimizer
