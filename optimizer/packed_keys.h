#pragma once

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Makes comparisons of packed values (Type::packed) use keys. Equal intervals may have different parts (1
/// month, 30 days), equal numerics different scales (1.0, 1.00), so neither their bytes nor their numbers
/// decide. Afterwards groups, orders, partitions, DISTINCT, set operations and comparisons of the tree use
/// exact numbers: spans, and NumericKey. Of a group of equal values it shows the least by its parts, or the
/// one of the fewest decimals. min and max use bytes in the order of the values; sums, averages and variances
/// use sums of the parts, as sums of decimals that may have more than 38 digits do. The tree's rows, columns
/// and names stay. 0A000 for sums, averages and variances of distinct packed values, which the binder admits
/// beside grouping sets only.
absl::Status UseKeysOfPackedValues(plan::logical::Query& query);

/// Does the same for the output of Unnest: lists of outer values, and joins with these. There values are
/// equal if all their bits are, as a subquery may look at these.
absl::Status UseBitsOfPackedValues(plan::logical::Query& query);

}  // namespace nam::optimizer
