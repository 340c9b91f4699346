#pragma once

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Intervals that are equal may have different parts (1 month, 30 days), so that neither their bytes nor
/// their numbers are what they are compared by. Afterwards groups, orders, partitions, DISTINCT, set
/// operations and comparisons of the tree are of their spans; of a group of equal ones the one that is shown
/// is the least by its parts. min and max are of bytes that are in the order of spans, sum and avg of the
/// parts. The tree's rows, their columns and their names stay. 0A000 for sum and avg of distinct intervals,
/// which the binder leaves beside grouping sets alone.
absl::Status UseSpansOfIntervals(plan::logical::Query& query);

/// What Unnest has made since: lists of outer values, and joins with these. There intervals are one that are
/// the same in all parts, as a subquery may look at these.
absl::Status UsePartsOfIntervals(plan::logical::Query& query);

}  // namespace nam::optimizer
