#pragma once

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Makes comparisons of intervals use their spans. Equal intervals may have different parts (1 month, 30
/// days), so neither their bytes nor their numbers decide. Afterwards groups, orders, partitions, DISTINCT,
/// set operations and comparisons of the tree use spans; of a group of equal intervals it shows the least by
/// its parts. min and max use bytes in the order of spans, sum and avg the parts. The tree's rows, columns
/// and names stay. 0A000 for sum and avg of distinct intervals, which the binder admits beside grouping sets
/// only.
absl::Status UseSpansOfIntervals(plan::logical::Query& query);

/// Does the same for the output of Unnest: lists of outer values, and joins with these. There intervals are
/// equal if all parts are, as a subquery may look at these.
absl::Status UsePartsOfIntervals(plan::logical::Query& query);

}  // namespace nam::optimizer
