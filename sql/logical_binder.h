#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/bound_query.h"

namespace nam::sql {

/// Binds a SELECT, VALUES or TABLE to a logical tree, subqueries as dependent joins. Refuses what PostgreSQL
/// refuses with its SQLSTATE, what the engine lacks with 0A000, nesting beyond the bounds with 54001.
absl::StatusOr<plan::logical::Query> BindLogical(const std::string& text, TableSource& tables);

}  // namespace nam::sql
