#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "catalog/client.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// ANALYZE: counts the distinct values of columns by queries over all rows, and gives them to the catalog.
/// Appends merge the counts of loads, and can only guess how many values are in both; record tables are
/// counted by ANALYZE only. 40001 if a table has changed meanwhile. `run`: runs one query and returns its
/// rows.
absl::StatusOr<ResultSet> Analyze(const sql::AnalyzeStatement& statement, catalog::Client& catalog,
                                  const std::function<absl::StatusOr<ResultSet>(const std::string&)>& run);

}  // namespace nam::session
