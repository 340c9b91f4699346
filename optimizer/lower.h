#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "optimizer/assignment.h"
#include "optimizer/plan.h"
#include "optimizer/plan_builder.h"
#include "plan/physical.h"

namespace nam::optimizer {

/// The physical plan of a star: a build pipeline for each join, in probe order, then the driving table's with
/// all probes. One stage, which claims the driving table's pieces. Each pipeline carries only the columns
/// that something behind it looks at. Scans of records lack the snapshot and the transaction's writes, which
/// the session fills in. The result passed plan::Check and plan::CheckTables; 54001 if an
/// expression is too deep.
absl::StatusOr<plan::PhysicalPlan> Lower(const Plan& star, const TableRefs& tables);

/// The pipelines of a star at a stage: its build sides are closed, and what leaves the driving table's probes
/// is named by the star's columns.
absl::StatusOr<Flow> LowerStar(const Plan& star, const TableRefs& tables, PlanBuilder& builder,
                               uint32_t stage);

/// The plan of a query over one record table whose rows the session's transaction finds: one stage, the
/// session's, whose first pipeline scans them. `filters` are what is left to be checked of their rows.
/// `ordered`: they come in the order of ORDER BY. Errors as of Lower and LowerFinish.
absl::StatusOr<plan::PhysicalPlan> LowerRecords(const sql::BoundQuery& query, const Plan& star,
                                                std::span<const plan::Expr* const> filters, bool ordered);

/// Adds what is left for the session: groups are merged, HAVING, select list, DISTINCT, ORDER BY, OFFSET and
/// LIMIT. `plan` is Lower's of `star`, which is the query's. `ordered`: its rows come in the order of ORDER
/// BY. 42P10 for an ORDER BY that DISTINCT
/// leaves without a meaning; 54001 if an expression is too deep.
absl::Status LowerFinish(const sql::BoundQuery& query, const Plan& star, plan::PhysicalPlan& plan,
                         bool ordered = false);

}  // namespace nam::optimizer
