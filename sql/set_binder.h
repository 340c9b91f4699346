#pragma once

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

/// SET, RESET and SHOW. The session knows which settings exist.
namespace nam::sql {

absl::StatusOr<Statement> BindSet(const Node& node);
absl::StatusOr<Statement> BindShow(const Node& node);

}  // namespace nam::sql
