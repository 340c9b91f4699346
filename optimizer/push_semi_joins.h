#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Semi and anti joins with what is no scan are made before the inner joins that make their rows many: with
/// the table that has their keys, if that is small beside another one.
///
///     semi(inner(orders, lineitem), groups)  ──►  inner(semi(orders, groups), lineitem)
///
/// Rows of the tree above would have to be written to scratch memory, or looked up one by one. A semi join
/// with a scan stays where it is: servers make it as a further step behind the others. Of a tree without
/// dependent joins, whose filters PushFilters has moved to the scans.
void PushSemiJoins(plan::logical::Query& query);

}  // namespace nam::optimizer
