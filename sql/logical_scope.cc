#include "sql/logical_scope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::logical::Column;

const FromRelation* FindRelation(const FromScope& scope, const std::string& alias) {
  const auto found = std::find_if(scope.relations.begin(), scope.relations.end(),
                                  [&](const FromRelation& r) { return r.alias == alias; });
  return found == scope.relations.end() ? nullptr : &*found;
}

absl::Status NotReachable(const std::string& name, int position) {
  return UserError(sqlstate::kBadColumnReference,
                   absl::StrCat("LATERAL cannot reference ", Quote(name), " from this side of the JOIN"),
                   position, "the JOIN must be an inner or a LEFT JOIN");
}

absl::Status UnknownTable(const ScopeLevel& innermost, const std::string& alias, int position) {
  std::string hint;
  std::vector<std::string> aliases;
  for (const ScopeLevel* level = &innermost; level != nullptr; level = level->outer) {
    for (const FromRelation& relation : level->scope->relations) {
      if (level->sealed && relation.alias == alias) {
        return UserError(
            sqlstate::kUndefinedTable,
            absl::StrCat("table ", Quote(alias), " cannot be referenced from this part of the query"),
            position,
            "ON sees the two sides of its own JOIN only: move the condition to WHERE; a subquery in FROM "
            "sees "
            "the items to its left only after LATERAL");
      }
      if (level->sealed) continue;
      aliases.push_back(relation.alias);
      if (relation.table == alias && hint.empty())
        hint = absl::StrCat("in this query it is called ", Quote(relation.alias));
    }
  }
  if (hint.empty()) hint = DidYouMean(alias, aliases);
  if (hint.empty()) hint = "name the table in FROM";
  return UserError(sqlstate::kUndefinedTable, absl::StrCat("table ", Quote(alias), " is not in FROM"),
                   position, hint);
}

absl::StatusOr<const FromRelation*> Relation(const ScopeLevel& innermost, const std::string& alias,
                                             int position) {
  for (const ScopeLevel* level = &innermost; level != nullptr; level = level->outer) {
    if (level->sealed) continue;
    const FromRelation* relation = FindRelation(*level->scope, alias);
    if (relation == nullptr) continue;
    if (!relation->reachable) return NotReachable(alias, position);
    return relation;
  }
  return UnknownTable(innermost, alias, position);
}

/// The relation's column that a file writes so; nullptr if there is none.
const Column* ColumnWritten(const FromRelation& relation, const std::string& name) {
  const auto found = std::find(relation.written.begin(), relation.written.end(), name);
  return found == relation.written.end()
             ? nullptr
             : &relation.columns[static_cast<size_t>(found - relation.written.begin())];
}

absl::StatusOr<Column> Qualified(const FromRelation& relation, const std::string& name, int position) {
  const Column* found = nullptr;
  std::vector<std::string> names;
  for (const Column& column : relation.columns) {
    names.push_back(column.name);
    if (column.name != name) continue;
    if (found != nullptr) {
      return UserError(sqlstate::kAmbiguousColumn,
                       absl::StrCat("column ", Quote(relation.alias + "." + name), " is ambiguous"), position,
                       "give the columns different names with AS");
    }
    found = &column;
  }
  if (found == nullptr) found = ColumnWritten(relation, name);
  if (found != nullptr) return *found;
  return UserError(sqlstate::kUndefinedColumn,
                   absl::StrCat("column ", Quote(relation.alias + "." + name), " does not exist"), position,
                   DidYouMean(name, names));
}

absl::Status UnknownColumn(const ScopeLevel& innermost, const std::string& name, int position, bool quoted) {
  std::vector<std::string> names;
  for (const ScopeLevel* level = &innermost; level != nullptr; level = level->outer) {
    if (level->sealed) continue;
    for (const Column& column : level->scope->columns) names.push_back(column.name);
    if (FindRelation(*level->scope, name) == nullptr) continue;
    return Refusal(absl::StrCat("the whole row of ", Quote(name), " as a value is not supported"), position,
                   absl::StrCat("name its columns, or write ", name, ".*"));
  }
  std::string hint = DidYouMean(name, names);
  for (const ScopeLevel* level = &innermost; level != nullptr && hint.empty(); level = level->outer) {
    if (level->sealed && HasColumn(*level->scope, name))
      hint = "a subquery in FROM sees the columns to its left only after LATERAL";
  }
  if (hint.empty() && quoted) hint = "double quotes are for names; strings are written with single quotes";
  return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name), " does not exist"),
                   position, hint);
}

/// `a.x or b.x`: the qualified names to choose from.
std::string Alternatives(const FromScope& scope, const Column& a, const Column& b) {
  std::vector<std::string> ways;
  for (const Column* column : {&a, &b}) {
    for (const FromRelation& relation : scope.relations) {
      if (relation.alias.empty() || plan::logical::FindColumn(relation.columns, column->ref) == nullptr)
        continue;
      ways.push_back(absl::StrCat(relation.alias, ".", column->name));
      break;
    }
  }
  if (ways.size() == 2 && ways[0] != ways[1]) return absl::StrCat("write ", ways[0], " or ", ways[1]);
  return "give the columns different names with AS";
}

/// `schema.t.x` is t.x if t is that table.
absl::StatusOr<std::vector<std::string>> WithoutSchema(const ScopeLevel& innermost,
                                                       const std::vector<std::string>& name, size_t most,
                                                       int position) {
  bool known = name.size() == most + 1 && name[0] == kPublicSchema;
  for (const ScopeLevel* level = &innermost; level != nullptr && name.size() == most + 1;
       level = level->outer) {
    for (const FromRelation& relation : level->scope->relations)
      known = known || relation.table == QualifiedName(name[0], name[1]);
  }
  if (known) return std::vector<std::string>(name.begin() + 1, name.end());
  if (name.size() > most) {
    return Refusal("column names with a schema are not supported", position, "write table.column");
  }
  return name;
}

}  // namespace

void FromScope::Add(const FromScope& other) {
  relations.insert(relations.end(), other.relations.begin(), other.relations.end());
  columns.insert(columns.end(), other.columns.begin(), other.columns.end());
}

bool HasColumn(const FromScope& scope, const std::string& name) {
  return std::any_of(scope.columns.begin(), scope.columns.end(),
                     [&](const Column& column) { return column.name == name; });
}

absl::StatusOr<Column> ResolveColumn(const ScopeLevel& innermost, const std::vector<std::string>& written,
                                     int position, bool quoted) {
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> name, WithoutSchema(innermost, written, 2, position));
  if (name.size() == 2) {
    NAM_ASSIGN_OR_RETURN(const FromRelation* relation, Relation(innermost, name[0], position));
    return Qualified(*relation, name[1], position);
  }
  for (const ScopeLevel* level = &innermost; level != nullptr; level = level->outer) {
    if (level->sealed) continue;
    const Column* found = nullptr;
    for (const Column& column : level->scope->columns) {
      if (column.name != name[0]) continue;
      if (found != nullptr) {
        return UserError(sqlstate::kAmbiguousColumn, absl::StrCat("column ", Quote(name[0]), " is ambiguous"),
                         position, Alternatives(*level->scope, *found, column));
      }
      found = &column;
    }
    for (const FromRelation& relation : level->scope->relations) {
      if (found == nullptr) found = ColumnWritten(relation, name[0]);
    }
    if (found == nullptr) continue;
    for (const FromRelation& relation : level->scope->relations) {
      if (!relation.reachable && plan::logical::FindColumn(relation.columns, found->ref) != nullptr)
        return NotReachable(name[0], position);
    }
    return *found;
  }
  return UnknownColumn(innermost, name[0], position, quoted);
}

absl::StatusOr<Column> ResolveColumn(const ScopeLevel& level, const Node& node) {
  NAM_RETURN_IF_ERROR(node.Only({"fields"}));
  const int position = node.position();
  const std::vector<Node> fields = node.List("fields");
  const bool star = !fields.empty() && fields.back().Is("A_Star");
  if (star && fields.size() > 1) {
    return Refusal("the whole row of a table as a value is not supported", position, "name its columns");
  }
  if (star) {
    return UserError(sqlstate::kSyntaxError, "* is not an expression", position,
                     "write it alone in the select list, or in count(*)");
  }
  const std::string& text = node.text().text();
  const bool quoted = position >= 0 && static_cast<size_t>(position) < text.size() && text[position] == '"';
  return ResolveColumn(level, node.Names("fields"), position, quoted);
}

absl::StatusOr<std::vector<Column>> ResolveStar(const ScopeLevel& level,
                                                const std::vector<std::string>& table, int position) {
  if (table.empty()) return level.scope->columns;
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> name, WithoutSchema(level, table, 1, position));
  NAM_ASSIGN_OR_RETURN(const FromRelation* relation, Relation(level, name[0], position));
  return relation->columns;
}

std::string WrittenOut(const FromScope& scope, const std::vector<Column>& columns) {
  const auto quoted = [](const std::string& name) {
    return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
  };
  std::vector<std::string> names;
  for (const Column& column : columns) {
    std::string name = quoted(column.name);
    for (const FromRelation& relation : scope.relations) {
      if (relation.alias.empty() || plan::logical::FindColumn(relation.columns, column.ref) == nullptr)
        continue;
      name = absl::StrCat(quoted(relation.alias), ".", name);
      break;
    }
    names.push_back(std::move(name));
  }
  return absl::StrJoin(names, ", ");
}

absl::Status RenameColumns(const std::vector<std::string>& names, const std::string& alias, int position,
                           std::vector<Column>& columns) {
  if (names.size() > columns.size()) {
    return UserError(sqlstate::kBadColumnReference,
                     absl::StrCat("table ", Quote(alias), " has ", columns.size(), " columns, but ",
                                  names.size(), " names for them"),
                     position, "leave the last names out");
  }
  for (size_t i = 0; i < names.size(); ++i) columns[i].name = names[i];
  return absl::OkStatus();
}

}  // namespace nam::sql
