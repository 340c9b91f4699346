#include "session/catalog_changes.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using Kind = sql::DropTableStatement::Kind;

const char* WordOf(Kind kind) {
  return kind == Kind::kTable ? "table" : kind == Kind::kView ? "view" : "schema";
}

absl::Status Missing(const sql::DropTableStatement& statement) {
  const bool schema = statement.kind == Kind::kSchema;
  return ToStatus(
      {.message = absl::StrCat(WordOf(statement.kind), " ", Quote(statement.table), " does not exist"),
       .position = statement.position,
       .hint = schema ? "\\dn lists the schemas" : "\\dt lists the tables",
       .sqlstate = schema ? sqlstate::kUndefinedSchema : sqlstate::kUndefinedTable});
}

constexpr char kDropHint[] = "drop what depends on it first, or DROP … CASCADE";
constexpr char kAlterHint[] = "DROP VIEW what depends on it first, and CREATE it again afterwards";

/// The catalog's error with names in SQL's quotes, and this hint if something depends on the entry.
absl::Status CatalogErrorInSql(const absl::Status& status, const std::string& what, const char* hint,
                               int position) {
  if (status.ok() || SqlErrorOf(status).has_value()) return status;
  const std::string message = absl::StrReplaceAll(catalog::MessageOfService(status), {{"`", "\""}});
  if (absl::IsAborted(status)) {
    return ToStatus({.message = message,
                     .hint = "nothing of this statement has happened; run it again",
                     .sqlstate = sqlstate::kSerializationFailure});
  }
  if (absl::IsNotFound(status)) {
    return ToStatus({.message = absl::StrCat(what, ": ", message), .sqlstate = sqlstate::kUndefinedTable});
  }
  if (absl::IsFailedPrecondition(status) && absl::StrContains(message, "depends on")) {
    return ToStatus({.message = absl::StrCat(what, ": ", message),
                     .position = position,
                     .hint = hint,
                     .sqlstate = sqlstate::kDependentObjects});
  }
  if (absl::IsFailedPrecondition(status)) {
    return ToStatus({.message = absl::StrCat(what, ": ", message),
                     .position = position,
                     .sqlstate = sqlstate::kWrongState});
  }
  return status;
}

absl::Status Exists(const std::string& what, const std::string& name, const char* state, int position) {
  return ToStatus({.message = absl::StrCat(what, " ", Quote(name), " already exists"),
                   .position = position,
                   .hint = "choose another name",
                   .sqlstate = state});
}

}  // namespace

void AddNotice(std::string message, ResultSet& result) {
  result.warnings.push_back({std::move(message), sqlstate::kSuccess});
}

ResultSet AlreadyThere(std::string command, const std::string& name) {
  ResultSet result = CommandResult(std::move(command));
  AddNotice(absl::StrCat("relation ", Quote(name), " already exists, skipping"), result);
  return result;
}

ResultSet CreatedTable(const sql::CreateTableStatement& statement, std::string command) {
  ResultSet result = CommandResult(std::move(command));
  if (!statement.storage_by_default) return result;
  const bool record = sql::IsRecordTable(statement.table);
  AddNotice(absl::StrCat("table ", Quote(statement.table.name()),
                         record ? " is a record table, for rows that transactions change; WITH (storage = "
                                  "columnar) makes one for loads and scans of many rows"
                                : " is a columnar table, for loads and scans of many rows; UPDATE and DELETE "
                                  "need a record table, which CREATE TABLE without AS makes"),
            result);
  return result;
}

// Tables with foreign keys first leave their parents, which takes steps of their own.
absl::Status CatalogChanges::LeaveParentsIn(const std::string& schema) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, attachment_.catalog().ListTables());
  for (const proto::Table& table : tables) {
    if (SchemaOfName(table.name()) != schema || table.record().foreign_keys().empty() || records_ == nullptr)
      continue;
    const absl::Status dropped = records_->DropTable(table.name(), /*cascade=*/true);
    if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
  }
  return absl::OkStatus();
}

absl::Status CatalogChanges::DropTables(const sql::DropTableStatement& statement, ResultSet& result) {
  if (statement.kind == Kind::kTable && records_ != nullptr)
    return records_->DropTable(statement.table, statement.cascade);
  std::string name = statement.table;
  if (statement.kind == Kind::kSchema) {
    name = SchemaEntryOf(statement.table);
    if (statement.cascade) {
      NAM_RETURN_IF_ERROR(attachment_.catalog().GetTable(name).status());
      NAM_RETURN_IF_ERROR(LeaveParentsIn(statement.table));
    }
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> views,
                       attachment_.catalog().Drop(name, statement.cascade));
  for (const std::string& view : views) AddNotice(absl::StrCat("drop cascades to view ", view), result);
  return absl::OkStatus();
}

absl::StatusOr<ResultSet> CatalogChanges::Drop(const sql::DropTableStatement& statement) {
  constexpr const char* kCommands[] = {"DROP TABLE", "DROP VIEW", "DROP SCHEMA"};
  ResultSet result = CommandResult(kCommands[static_cast<size_t>(statement.kind)]);
  const absl::Status dropped = DropTables(statement, result);
  if (absl::IsNotFound(dropped)) {
    if (!statement.if_exists) return Missing(statement);
    AddNotice(absl::StrCat(WordOf(statement.kind), " ", Quote(statement.table), " does not exist, skipping"),
              result);
    return result;
  }
  NAM_RETURN_IF_ERROR(CatalogErrorInSql(
      dropped, absl::StrCat("cannot drop ", WordOf(statement.kind), " ", Quote(statement.table)), kDropHint,
      statement.position));
  return result;
}

absl::StatusOr<ResultSet> CatalogChanges::CreateSchema(const sql::CreateSchemaStatement& statement) {
  ResultSet result = CommandResult("CREATE SCHEMA");
  proto::ChangeCatalogRequest request;
  request.mutable_create()->mutable_entry()->set_name(SchemaEntryOf(statement.name));
  request.mutable_create()->mutable_entry()->set_schema(true);
  const absl::Status made = statement.name == kPublicSchema
                                ? absl::AlreadyExistsError("")
                                : attachment_.catalog().ChangeCatalog(request).status();
  if (absl::IsAlreadyExists(made)) {
    if (!statement.if_not_exists) return Exists("schema", statement.name, sqlstate::kDuplicateSchema, -1);
    AddNotice(absl::StrCat("schema ", Quote(statement.name), " already exists, skipping"), result);
    return result;
  }
  NAM_RETURN_IF_ERROR(
      CatalogErrorInSql(made, absl::StrCat("cannot create schema ", Quote(statement.name)), "", -1));
  return result;
}

absl::StatusOr<ResultSet> CatalogChanges::CreateView(const sql::CreateViewStatement& statement) {
  proto::ChangeCatalogRequest request;
  proto::CreateEntry& create = *request.mutable_create();
  *create.mutable_entry() = statement.view;
  create.set_replace(statement.replace);
  for (const proto::ViewSource& source : statement.sources) *create.add_sources() = source;
  const absl::Status made = attachment_.catalog().ChangeCatalog(request).status();
  if (absl::IsAlreadyExists(made))
    return Exists("relation", statement.view.name(), sqlstate::kDuplicateTable, statement.position);
  NAM_RETURN_IF_ERROR(CatalogErrorInSql(made,
                                        absl::StrCat("cannot create view ", Quote(statement.view.name())),
                                        kAlterHint, statement.position));
  return CommandResult("CREATE VIEW");
}

absl::StatusOr<ResultSet> CatalogChanges::Alter(const sql::AlterTableStatement& statement) {
  ResultSet result = CommandResult(statement.command);
  for (const std::string& notice : statement.notices) AddNotice(notice, result);
  if (statement.table == nullptr) return result;
  const proto::Table& table = *statement.table;
  proto::ChangeCatalogRequest request;
  if (!statement.to.empty()) {
    proto::RenameTable& rename = *request.mutable_rename();
    rename.set_from(table.name());
    rename.set_to(statement.to);
    rename.set_creation(table.creation() == 0 ? table.allocation() : table.creation());
  } else {
    *request.mutable_alter()->mutable_table() = statement.changed;
    request.mutable_alter()->set_expected_version(table.version());
  }
  const absl::Status altered = attachment_.catalog().ChangeCatalog(request).status();
  if (absl::IsAlreadyExists(altered))
    return Exists("relation", statement.to, sqlstate::kDuplicateTable, statement.position);
  NAM_RETURN_IF_ERROR(CatalogErrorInSql(altered, absl::StrCat("cannot alter ", Quote(table.name())),
                                        kAlterHint, statement.position));
  return result;
}

}  // namespace nam::session
