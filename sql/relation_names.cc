#include "sql/relation_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "sql/logical_query.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// A schema that SET search_path names by default, and that does not exist.
constexpr char kUserSchema[] = "$user";

std::vector<std::string> Candidates(const std::vector<std::string>& search_path, const std::string& schema,
                                    const std::string& name) {
  if (!schema.empty()) return {QualifiedName(schema, name)};
  // The system's tables are in no schema.
  if (IsSystemName(name)) return {name};
  // No table's own name holds a dot: "s.t" is not s.t.
  std::vector<std::string> names;
  if (name.find('.') != std::string::npos) return names;
  for (const std::string& searched : search_path) {
    if (searched != kUserSchema) names.push_back(QualifiedName(searched, name));
  }
  return names;
}

/// Suggests tables beyond the search path with their schema.
std::string HintOfMissing(const Node& relation, const std::vector<std::string>& all,
                          const std::vector<std::string>& search_path) {
  if (all.empty()) return "there is no table yet; load one first";
  std::vector<std::string> names;
  for (const std::string& name : all) {
    const std::string schema = SchemaOfName(name);
    const bool searched = !relation.Has("schemaname") &&
                          std::find(search_path.begin(), search_path.end(), schema) != search_path.end();
    if (!searched && !relation.Has("schemaname") && BareName(name) == relation.Text("relname")) {
      return absl::StrCat("search_path lacks its schema: write ", WrittenIdentifier(schema), ".",
                          WrittenIdentifier(BareName(name)));
    }
    names.push_back(searched ? BareName(name) : absl::StrCat(schema, ".", BareName(name)));
  }
  return DidYouMean(WrittenName(relation), names);
}

}  // namespace

std::string WrittenIdentifier(const std::string& name) {
  const auto plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_'; };
  const bool word =
      !name.empty() && !absl::ascii_isdigit(name[0]) && std::all_of(name.begin(), name.end(), plain);
  if (word && Parses(absl::StrCat("TABLE ", name))) return name;
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

std::string WrittenName(const Node& relation) {
  const std::string schema = relation.Text("schemaname"), name = relation.Text("relname");
  return schema.empty() ? name : absl::StrCat(schema, ".", name);
}

absl::StatusOr<std::vector<std::string>> CandidateNames(const std::vector<std::string>& search_path,
                                                        const Node& relation) {
  const std::string schema = relation.Text("schemaname"), name = relation.Text("relname");
  if (relation.Has("catalogname")) {
    return Refusal("names of other databases are not supported", relation.position(),
                   "write the table's name, or its schema's and its own");
  }
  if (schema == "pg_catalog" || schema == "information_schema") {
    return Refusal(absl::StrCat("schema ", Quote(schema), " is not supported"), relation.position(),
                   "in the shell \\dt lists tables, and \\d NAME describes one");
  }
  if (!schema.empty()) {
    NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrCat(schema, "."), relation.position()));
  }
  return Candidates(search_path, schema, name);
}

absl::StatusOr<std::shared_ptr<const proto::Table>> LookUpRelation(TableSource& tables,
                                                                   const std::string& schema,
                                                                   const std::string& name) {
  for (const std::string& candidate : Candidates(tables.settings().search_path, schema, name)) {
    auto found = tables.Find(candidate);
    if (absl::IsNotFound(found.status()) || (found.ok() && (*found)->schema())) continue;
    return found;
  }
  return absl::NotFoundError(absl::StrCat("there is no table `", QualifiedName(schema, name), "`"));
}

absl::StatusOr<std::optional<std::string>> CurrentSchema(TableSource& tables) {
  for (const std::string& schema : tables.settings().search_path) {
    if (schema == kUserSchema) continue;
    NAM_ASSIGN_OR_RETURN(const bool exists, SchemaExists(tables, schema));
    if (exists) return schema;
  }
  return std::nullopt;
}

absl::StatusOr<bool> SchemaExists(TableSource& tables, const std::string& schema) {
  if (schema == kPublicSchema) return true;
  const auto found = tables.Find(SchemaEntryOf(schema));
  if (absl::IsNotFound(found.status())) return false;
  NAM_RETURN_IF_ERROR(found.status());
  return true;
}

absl::Status NoSuchSchema(const std::string& schema, int position) {
  return UserError(sqlstate::kUndefinedSchema, absl::StrCat("schema ", Quote(schema), " does not exist"),
                   position, "CREATE SCHEMA makes one");
}

absl::Status CheckNewName(const std::string& name, int position) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(name, position));
  if (name.find('.') == std::string::npos) return absl::OkStatus();
  return UserError(sqlstate::kInvalidName, absl::StrCat("name ", Quote(name), " holds a dot"), position,
                   "a dot stands between the name of a schema and that of a table");
}

absl::StatusOr<std::string> NewRelationName(TableSource& tables, const Node& relation) {
  const int position = relation.position();
  const std::string name = relation.Text("relname");
  NAM_RETURN_IF_ERROR(CheckNewName(name, position));
  // Refuses names of other databases.
  NAM_RETURN_IF_ERROR(CandidateNames({}, relation).status());
  if (relation.Has("schemaname")) {
    const std::string schema = relation.Text("schemaname");
    NAM_RETURN_IF_ERROR(CheckNotSystem(absl::StrCat(schema, "."), position));
    NAM_ASSIGN_OR_RETURN(const bool exists, SchemaExists(tables, schema));
    if (!exists) return NoSuchSchema(schema, position);
    return QualifiedName(schema, name);
  }
  NAM_ASSIGN_OR_RETURN(const std::optional<std::string> current, CurrentSchema(tables));
  if (current.has_value()) return QualifiedName(*current, name);
  return UserError(sqlstate::kUndefinedSchema, "no schema has been selected to create in", position,
                   "SET search_path to one that exists, or write its name before the table's");
}

absl::Status CheckIsPermanent(const Node& relation, const char* kind, int position) {
  const std::string persistence = relation.Text("relpersistence");
  if (persistence == "p") return absl::OkStatus();
  if (persistence == "u") return Refusal("UNLOGGED is not supported", position, "leave it out");
  return Refusal(
      "TEMPORARY is not supported", position,
      absl::StrCat("a ", kind,
                   " without TEMPORARY stays until it is dropped, and all sessions see it; for one "
                   "statement write WITH name AS (SELECT …)"));
}

absl::StatusOr<std::shared_ptr<const proto::Table>> LogicalContext::FindRelation(const Node& relation) {
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> names, CandidateNames(*search_path, relation));
  for (const std::string& name : names) {
    auto& table = found[name];
    if (table == nullptr) {
      auto looked_up = source.Find(name);
      if (absl::IsNotFound(looked_up.status())) continue;
      NAM_RETURN_IF_ERROR(looked_up.status());
      table = *std::move(looked_up);
    }
    if (table->schema()) continue;
    if (views == 0) named[name] = table;
    return table;
  }
  return UserError(sqlstate::kUndefinedTable,
                   absl::StrCat("table ", Quote(WrittenName(relation)), " does not exist"),
                   relation.position(), HintOfMissing(relation, source.Names(), *search_path));
}

absl::StatusOr<std::shared_ptr<const proto::Table>> LogicalContext::FindTable(const Node& relation) {
  NAM_ASSIGN_OR_RETURN(auto table, FindRelation(relation));
  if (!table->has_view()) return table;
  return UserError(sqlstate::kWrongObjectType, absl::StrCat(Quote(WrittenName(relation)), " is a view"),
                   relation.position(),
                   "views are read; what they show is changed in the tables that they read");
}

}  // namespace nam::sql
