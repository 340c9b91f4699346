#pragma once

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

absl::StatusOr<BoundQuery> BindSelect(const Node& select, TableSource& source);

/// Refuses the clauses of SELECT that are not supported, by name and at their place. On success only FROM,
/// WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, the select list and DISTINCT are left.
absl::Status RefuseSelectClauses(const Node& select);

}  // namespace nam::sql
