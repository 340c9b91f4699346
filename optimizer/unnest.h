#pragma once

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Removes all dependent joins: afterwards no part of the tree is correlated with another one
/// (plan::logical::CheckTree with `unnested`). The result's rows, their columns and their order stay.
///
/// Common forms become plain joins: correlated conditions move up into the join, scalar aggregates are
/// grouped by what they are correlated by, and EXISTS and IN that filter rows become semi and anti joins. For
/// the rest the dependent join goes down, by Neumann and Kemper ("Unnesting Arbitrary Queries", BTW 2015):
/// the right input is computed for the domain, which is each combination of correlated values that occurs on
/// the left, once; the join then compares with these values. The left input is a CTE then, as both the join
/// and the domain read it.
///
/// The binder admits neither recursive queries nor functions whose value changes between calls, which this
/// could not treat. An error of a subquery that only some rows would have asked may be raised for all.
absl::Status Unnest(plan::logical::Query& query);

}  // namespace nam::optimizer
