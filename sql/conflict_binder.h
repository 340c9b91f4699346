#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// ON CONFLICT of an INSERT into `relation`. Columns that it sets to DEFAULT go to `defaults`. 42P10 if no
/// key of the table has the columns that it names.
absl::StatusOr<ConflictAction> BindConflict(const Node& clause, const Node& relation, TableSource& tables,
                                            std::set<int>& defaults);

}  // namespace nam::sql
