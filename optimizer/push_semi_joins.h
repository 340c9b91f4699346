#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Makes a semi or anti join before the inner joins that multiply its rows: with the table that has its keys,
/// if that is small beside another one.
///
///     semi(inner(orders, lineitem), Q)  ──►  inner(semi(orders, Q), lineitem)
///
/// Returns that tree, with `right` in Q's place; null if it is not worthwhile, or might fail where the join
/// did not. It is worthwhile if Q is no scan, so that servers would have to write the rows of the tree above
/// to scratch memory. Leaves record tables alone, which have no statistics.
plan::logical::NodePtr WithSemiJoinFirst(const plan::logical::Node& join, plan::logical::NodePtr right);

}  // namespace nam::optimizer
