#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

/// Names of tables, views and schemas as statements write them, and as the catalog has them
/// (base/qualified_names.h).
namespace nam::sql {

/// The relation's possible names in the catalog, in the order of the search path. 0A000 for another database.
absl::StatusOr<std::vector<std::string>> CandidateNames(const std::vector<std::string>& search_path,
                                                        const Node& relation);

/// The catalog's name of a new table or view: 3F000 if its schema does not exist, 42501 and 42602 for names
/// that are not allowed.
absl::StatusOr<std::string> NewRelationName(TableSource& tables, const Node& relation);

/// 0A000 for a new relation of the kind (`table`, `view`) that is TEMPORARY or UNLOGGED.
absl::Status CheckIsPermanent(const Node& relation, const char* kind, int position);

/// A RangeVar's name as written.
std::string WrittenName(const Node& relation);

/// 42602 if an unqualified name contains a dot, 42501 if it is the system's.
absl::Status CheckNewName(const std::string& name, int position);

/// The first schema of the search path that exists: new tables are made there. Nullopt if none does.
absl::StatusOr<std::optional<std::string>> CurrentSchema(TableSource& tables);

/// Whether there is such a schema.
absl::StatusOr<bool> SchemaExists(TableSource& tables, const std::string& schema);

absl::Status NoSuchSchema(const std::string& schema, int position);

}  // namespace nam::sql
