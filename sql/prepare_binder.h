#pragma once

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parameters.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// Any statement but PREPARE.
absl::StatusOr<Statement> BindStatement(const Node& root, TableSource& tables);

/// `parameters` are those of the node's text. 42P18 if one has no type.
absl::StatusOr<Statement> BindPrepare(const Node& node, TableSource& tables, Parameters& parameters);
absl::StatusOr<Statement> BindExecute(const Node& node);

/// The arguments as values of the parameters' types. `zone` is the session's.
absl::StatusOr<Parameters> ArgumentsOf(const PrepareStatement& prepared, const ExecuteStatement& execute,
                                       const std::string& zone);

}  // namespace nam::sql
