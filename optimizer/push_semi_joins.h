#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// A semi or anti join is made before the inner joins that make its rows many: with the table that has its
/// keys, if that is small beside another one.
///
///     semi(inner(orders, lineitem), Q)  ──►  inner(semi(orders, Q), lineitem)
///
/// Returns that tree, with `right` in Q's place; nothing if it is not worth it, or might fail where the join
/// did not. It is worth it if Q is no scan, so that servers would have to write the rows of the tree above to
/// scratch memory. Record tables have no statistics, and are left alone.
plan::logical::NodePtr WithSemiJoinFirst(const plan::logical::Node& join, plan::logical::NodePtr right);

}  // namespace nam::optimizer
