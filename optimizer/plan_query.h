#pragma once

#include "absl/status/statusor.h"
#include "optimizer/lower_tree.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// The first half of PlanQuery: intervals are compared by their spans, correlation is removed, conditions
/// move down. Errors as of UseSpansOfIntervals and Unnest.
absl::Status Rewrite(plan::logical::Query& query);

/// From a bound query to its physical plan: what Rewrite does, then operators are chosen. Errors as of
/// Rewrite and LowerTree.
absl::StatusOr<LoweredTree> PlanQuery(plan::logical::Query query, const LoweringOptions& options = {});

}  // namespace nam::optimizer
