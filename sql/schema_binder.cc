#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "sql/logical_query.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

/// CREATE SCHEMA, and all forms of DROP.
namespace nam::sql {
namespace {

using ObjectKind = DropTableStatement::Kind;

struct DroppedKind {
  const char* object;  // in the tree
  const char* word;
  ObjectKind kind;
};
constexpr DroppedKind kDropped[] = {{"OBJECT_TABLE", "table", ObjectKind::kTable},
                                    {"OBJECT_VIEW", "view", ObjectKind::kView},
                                    {"OBJECT_SCHEMA", "schema", ObjectKind::kSchema}};

absl::StatusOr<Statement> BindDropSchema(DropTableStatement statement, const std::string& schema) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrCat(schema, "."), statement.position));
  if (schema == kPublicSchema) {
    return Refusal("DROP of schema public is not supported", statement.position,
                   "tables without a schema's name are in it");
  }
  statement.table = schema;
  return Statement(std::move(statement));
}

/// The first name that exists, or else the first.
absl::StatusOr<std::string> Existing(const std::vector<std::string>& names, TableSource& tables,
                                     std::shared_ptr<const proto::Table>& found) {
  for (const std::string& name : names) {
    auto looked_up = tables.Find(name);
    if (absl::IsNotFound(looked_up.status())) continue;
    NAM_RETURN_IF_ERROR(looked_up.status());
    found = *std::move(looked_up);
    return name;
  }
  return names.empty() ? std::string() : names[0];
}

absl::StatusOr<Statement> BindDropRelation(DropTableStatement statement,
                                           const std::vector<std::string>& written, TableSource& tables) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrJoin(written, "."), statement.position));
  NAM_RETURN_IF_ERROR(CheckNotSystem(written.back(), statement.position));
  std::vector<std::string> names;
  if (written.size() == 2) {
    names = {QualifiedName(written[0], written[1])};
  } else {
    for (const std::string& schema : tables.settings().search_path)
      names.push_back(QualifiedName(schema, written[0]));
  }
  std::shared_ptr<const proto::Table> found;
  NAM_ASSIGN_OR_RETURN(statement.table, Existing(names, tables, found));
  if (found == nullptr) {
    statement.table = written.size() == 2 ? names[0] : written[0];
    return Statement(std::move(statement));
  }
  const bool view = found->has_view();
  if (view == (statement.kind == ObjectKind::kView)) return Statement(std::move(statement));
  return UserError(
      sqlstate::kWrongObjectType, absl::StrCat(Quote(statement.table), " is not a ", view ? "table" : "view"),
      statement.position,
      absl::StrCat("use DROP ", view ? "VIEW" : "TABLE", " to remove a ", view ? "view" : "table"));
}

}  // namespace

absl::StatusOr<Statement> BindCreateSchema(const Node& node) {
  const int position = node.text().Find({"schema"});
  if (node.Has("authrole"))
    return Refusal("AUTHORIZATION is not supported", node.text().Find({"authorization"}), "leave it out");
  if (node.Has("schemaElts"))
    return Refusal("elements of CREATE SCHEMA are not supported", position,
                   "make tables by statements of their own");
  NAM_RETURN_IF_ERROR(node.Only({"schemaname", "if_not_exists"}));
  CreateSchemaStatement statement{node.Text("schemaname"), node.Flag("if_not_exists")};
  NAM_RETURN_IF_ERROR(CheckNewName(statement.name, position));
  NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrCat(statement.name, "."), position));
  if (statement.name.starts_with("pg_") || statement.name == "information_schema") {
    return UserError(sqlstate::kReservedName,
                     absl::StrCat("unacceptable schema name ", Quote(statement.name)), position,
                     "names that begin with pg_ are PostgreSQL's own");
  }
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindDrop(const Node& node, TableSource& tables) {
  const SqlText& text = node.text();
  const std::string type = node.Text("removeType");
  const bool index = type == "OBJECT_INDEX";
  const DroppedKind* kind = nullptr;
  for (const DroppedKind& one : kDropped) {
    if (type == one.object) kind = &one;
  }
  if (!index && kind == nullptr) {
    return Refusal("DROP of anything but tables, views, schemas and indexes is not supported", text.Start(),
                   "write DROP TABLE name, DROP VIEW name, DROP SCHEMA name or DROP INDEX name");
  }
  const char* const word = index ? "index" : kind->word;
  const std::vector<Node> objects = node.List("objects");
  if (objects.size() != 1) {
    const bool es = index;
    return Refusal(absl::StrCat("DROP of several ", word, es ? "es" : "s", " at once is not supported"),
                   text.Find({","}), "drop one after the other");
  }
  if (node.Flag("concurrent")) {
    return Refusal("CONCURRENTLY is not supported", text.Find({"concurrently"}),
                   "other sessions can write meanwhile without it");
  }
  NAM_RETURN_IF_ERROR(node.Only({"objects", "removeType", "behavior", "missing_ok", "concurrent"}));
  DropTableStatement statement;
  statement.if_exists = node.Flag("missing_ok");
  statement.cascade = node.Text("behavior") == "DROP_CASCADE";
  // The name has no location of its own; it follows EXISTS, or the keyword.
  statement.position = text.Find({}, text.Find({statement.if_exists ? "exists" : word}) + 1);
  if (!index && kind->kind == ObjectKind::kSchema) {
    statement.kind = kind->kind;
    return BindDropSchema(std::move(statement), objects[0].Text("sval"));
  }
  const std::vector<std::string> name = objects[0].Names("items");
  if (name.empty() || name.size() > 2) {
    return Refusal("names of other databases are not supported", statement.position,
                   "write the name, or its schema's and its own");
  }
  if (index) {
    if (statement.cascade)
      return Refusal("DROP INDEX … CASCADE is not supported", text.Find({"cascade"}), "leave it out");
    NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrJoin(name, "."), statement.position));
    NAM_RETURN_IF_ERROR(CheckNotSystem(name.back(), statement.position));
    DropIndexStatement drop{{}, statement.if_exists, statement.position};
    if (name.size() == 2) {
      drop.names = {QualifiedName(name[0], name[1])};
    } else {
      for (const std::string& schema : tables.settings().search_path)
        drop.names.push_back(QualifiedName(schema, name[0]));
    }
    return Statement(std::move(drop));
  }
  statement.kind = kind->kind;
  return BindDropRelation(std::move(statement), name, tables);
}

}  // namespace nam::sql
