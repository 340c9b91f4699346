#pragma once

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/record_access.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Statements that change only the catalog: views, schemas, ALTER TABLE except new columns, and DROP. Each
/// happens at once or not at all; 40001 if what it was bound to has changed meanwhile.
class CatalogChanges {
 public:
  /// Borrows both; `records` may be null.
  CatalogChanges(catalog::Attachment& attachment, RecordAccess* records)
      : attachment_(attachment), records_(records) {}

  absl::StatusOr<ResultSet> Drop(const sql::DropTableStatement& statement);
  absl::StatusOr<ResultSet> CreateSchema(const sql::CreateSchemaStatement& statement);
  absl::StatusOr<ResultSet> CreateView(const sql::CreateViewStatement& statement);
  /// For statements without a source.
  absl::StatusOr<ResultSet> Alter(const sql::AlterTableStatement& statement);

 private:
  absl::Status DropTables(const sql::DropTableStatement& statement, ResultSet& result);
  absl::Status LeaveParentsIn(const std::string& schema);

  catalog::Attachment& attachment_;
  RecordAccess* const records_;
};

/// The result of a CREATE TABLE that has made the table: a notice says which kind it is if nothing else does.
ResultSet CreatedTable(const sql::CreateTableStatement& statement, std::string command);

/// A notice, which PostgreSQL's clients show beside the result; it is no warning.
void AddNotice(std::string message, ResultSet& result);
/// The result of a command with IF NOT EXISTS that finds `name`: nothing but a notice.
ResultSet AlreadyThere(std::string command, const std::string& name);

}  // namespace nam::session
