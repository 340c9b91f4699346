#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Reorders inner joins with an input that is no table, so that any order of FROM gives the same plan:
///
///     lineitem, (select …) x, part   ──▶   (lineitem ⋈ part) ⋈ x
///
/// Tables that equalities connect are joined first: compute servers make such a star. The largest of what is
/// left comes first; then, one by one, the smallest input that an equality, or else another condition,
/// connects with those before it. Joins of tables alone stay as they are: a star has an order of its own
/// (join_order.h). So do joins with a condition that may fail: one before it may guard it. The tree's
/// columns, and their order, stay the same.
void OrderJoins(plan::logical::Query& query);

}  // namespace nam::optimizer
