#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

/// Binds statements that make and change tables, and those of transactions and settings. Other statements of
/// PostgreSQL's grammar than bound_query.h's are refused by name.
namespace nam::sql {

absl::StatusOr<Statement> BindCreateTable(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindCreateTableAs(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindCreateSchema(const Node& node);
absl::StatusOr<Statement> BindCreateView(const Node& node, TableSource& tables);
/// DROP TABLE, VIEW, SCHEMA or INDEX.
absl::StatusOr<Statement> BindDrop(const Node& node, TableSource& tables);
/// ALTER TABLE … ADD COLUMN, DROP COLUMN
absl::StatusOr<Statement> BindAlterTable(const Node& node, TableSource& tables);
/// ALTER … RENAME
absl::StatusOr<Statement> BindRename(const Node& node, TableSource& tables);
/// ALTER … SET SCHEMA
absl::StatusOr<Statement> BindSetSchema(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindTruncate(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindVacuum(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindCreateIndex(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindInsert(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindCopy(const Node& node, TableSource& tables);
/// Copies into all columns of the table, which need not exist yet, from the files' fields. `forms`: of each
/// column.
absl::StatusOr<CopyStatement> CopyOfFiles(std::shared_ptr<const proto::Table> table, std::string pattern,
                                          const csv::Dialect& dialect, std::vector<csv::SniffedFile> files,
                                          std::vector<csv::FieldForm> forms, const StatementTime& time);
/// The dialect that a file's name implies: `.csv`, `.tbl`, else text; perhaps compressed.
csv::Dialect DialectOfPath(std::string_view path);
absl::StatusOr<Statement> BindUpdate(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindDelete(const Node& node, TableSource& tables);
absl::StatusOr<Statement> BindTransaction(const Node& node);
/// SET and RESET. The session knows which settings exist.
absl::StatusOr<Statement> BindSet(const Node& node);
absl::StatusOr<Statement> BindShow(const Node& node);
/// SET TRANSACTION …, SET SESSION CHARACTERISTICS AS TRANSACTION …
absl::StatusOr<Statement> BindSetTransaction(const Node& node);

/// Binds the checks of a table from their text, for a statement of this time and zone.
absl::StatusOr<std::vector<BoundCheck>> BindChecks(const std::shared_ptr<const proto::Table>& table,
                                                   const StatementTime& time);

}  // namespace nam::sql
