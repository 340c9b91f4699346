#pragma once

#include "absl/status/statusor.h"
#include "sql/logical_query.h"

/// Queries without a select list of their own.
namespace nam::sql {

/// UNION, INTERSECT, EXCEPT [ALL], with ORDER BY and LIMIT of the whole.
absl::StatusOr<BoundTree> BindSetOperation(LogicalContext& context, const Surroundings& around,
                                           const Node& select);

/// VALUES (…), (…), with ORDER BY and LIMIT.
absl::StatusOr<BoundTree> BindValues(LogicalContext& context, const Surroundings& around, const Node& select);

}  // namespace nam::sql
