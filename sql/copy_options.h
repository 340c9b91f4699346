#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"
#include "sql/bound_query.h"
#include "sql/logical_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// The options of a COPY, in either direction.
struct CopyOptions {
  csv::Dialect dialect;
  bool match_header = false;
  bool skip_errors = false;
  std::string rejects;
  uint64_t batch_rows = 0;
  int batch_position = -1;
  bool force_quote_all = false;
  std::vector<std::string> force_quote;  // column names
  int force_quote_position = -1;

  /// Reads a CopyStmt. 42601 and 22023 as in PostgreSQL; 0A000 for options of the other direction.
  static absl::StatusOr<CopyOptions> From(const Node& copy);
};

/// The columns that a CopyStmt names, or all that are not hidden. `position`: the table name's.
absl::StatusOr<std::vector<int>> CopiedColumnsOf(const Node& copy, const proto::Table& table, int position);

/// The table of a CopyStmt. 42809 for a view.
absl::StatusOr<std::shared_ptr<const proto::Table>> CopiedTable(LogicalContext& context, const Node& copy);

/// COPY … TO.
absl::StatusOr<Statement> BindCopyTo(const Node& node, TableSource& tables);

}  // namespace nam::sql
