#pragma once

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/partial_result.h"
#include "optimizer/plan.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// A merger for the partial results of a plan.
execution::PartialMerger MakeMerger(const optimizer::Plan& plan);

/// What is left for one server to do once the partial results are merged: HAVING, the select list,
/// DISTINCT, ORDER BY, LIMIT. Consumes the merger's rows. CANCELLED soon after `cancel` is set.
absl::StatusOr<ResultSet> Finish(const sql::BoundQuery& query, const optimizer::Plan& plan,
                                 execution::PartialMerger& merger, const std::atomic<bool>& cancel);

}  // namespace nam::session
