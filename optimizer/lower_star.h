#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "optimizer/plan.h"
#include "optimizer/plan_builder.h"

namespace nam::optimizer {

/// Lowers a star to pipelines of a stage: a build pipeline for each join, in probe order, which are closed;
/// and the driving table's with all probes, whose flow is named by the star's columns. Each carries only the
/// columns that later operators need. Scans of records lack the snapshot and the transaction's writes, which
/// the session fills in. 54001 if an expression is too deep.
absl::StatusOr<Flow> LowerStar(const Plan& star, const TableRefs& tables, PlanBuilder& builder,
                               uint32_t stage);

}  // namespace nam::optimizer
