#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// ON CONFLICT of an INSERT into `relation`. Columns that it sets to DEFAULT go to `defaults`. Errors that
/// PostgreSQL reports after those of the statement's expressions go to `late`: 42P10 if no key of the table
/// has the named columns, 42601 if a column is assigned twice.
absl::StatusOr<ConflictAction> BindConflict(const Node& clause, const Node& relation, TableSource& tables,
                                            std::set<int>& defaults, absl::Status& late);

}  // namespace nam::sql
