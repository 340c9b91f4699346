#pragma once

#include "absl/status/statusor.h"
#include "optimizer/lower_tree.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// The first half of PlanQuery: makes intervals and numerics compare by keys, removes correlation, moves
/// conditions down. Errors as of UseKeysOfPackedValues and Unnest.
absl::Status Rewrite(plan::logical::Query& query);

/// Makes a physical plan of a bound query: Rewrite, then the choice of operators. Errors as of Rewrite and
/// LowerTree.
absl::StatusOr<LoweredTree> PlanQuery(plan::logical::Query query, const LoweringOptions& options = {});

}  // namespace nam::optimizer
