#include "sql/scope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {

using plan::ColumnRef;
using plan::Expr;
using plan::Op;

const proto::Column& NameResolver::column(ColumnRef ref) const {
  return tables_[static_cast<size_t>(ref.table)].table->columns(ref.column);
}

Expr NameResolver::ColumnExpr(ColumnRef ref, int position) const {
  Expr expr;
  expr.op = Op::kColumn;
  expr.position = position;
  expr.column = ref;
  expr.type = ColumnTypeOf(column(ref).type());
  return expr;
}

std::string NameResolver::ColumnName(ColumnRef ref) const {
  return absl::StrCat(tables_[static_cast<size_t>(ref.table)].alias, ".", column(ref).name());
}

bool NameResolver::HasColumn(const Scope& scope, const std::string& name) {
  return std::any_of(scope.columns.begin(), scope.columns.end(),
                     [&](const Scope::Column& column) { return column.name == name; });
}

absl::StatusOr<int> NameResolver::Table(const Scope& scope, const std::string& alias, int position) const {
  const auto named = [&](int table) { return tables_[static_cast<size_t>(table)].alias == alias; };
  const auto found = std::find_if(scope.tables.begin(), scope.tables.end(), named);
  if (found != scope.tables.end()) return *found;

  for (const BoundTable& table : tables_) {
    if (table.alias == alias) {
      return UserError(
          sqlstate::kUndefinedTable,
          absl::StrCat("table ", Quote(alias), " cannot be referenced from this part of the query"), position,
          "ON sees the two sides of its own JOIN only; move the condition to WHERE");
    }
  }
  std::string hint;
  std::vector<std::string> aliases;
  for (const BoundTable& table : tables_) {
    aliases.push_back(table.alias);
    if (table.table->name() == alias) hint = absl::StrCat("in this query it is called ", Quote(table.alias));
  }
  if (hint.empty()) hint = DidYouMean(alias, aliases);
  if (hint.empty()) hint = "name the table in FROM";
  return UserError(sqlstate::kUndefinedTable, absl::StrCat("table ", Quote(alias), " is not in FROM"),
                   position, hint);
}

absl::StatusOr<Expr> NameResolver::Qualified(const Scope& scope, const std::string& alias,
                                             const std::string& name, int position) const {
  NAM_ASSIGN_OR_RETURN(const int table, Table(scope, alias, position));
  const proto::Table& definition = *tables_[static_cast<size_t>(table)].table;
  std::vector<std::string> names;
  for (int i = 0; i < definition.columns_size(); ++i) {
    if (definition.columns(i).hidden()) continue;
    if (definition.columns(i).name() == name) return ColumnExpr({table, i}, position);
    names.push_back(definition.columns(i).name());
  }
  return UserError(sqlstate::kUndefinedColumn,
                   absl::StrCat("column ", Quote(alias + "." + name), " does not exist"), position,
                   DidYouMean(name, names));
}

absl::Status NameResolver::UnknownColumn(const Scope& scope, const std::string& name, int position,
                                         bool quoted) const {
  std::vector<std::string> names;
  for (const Scope::Column& column : scope.columns) names.push_back(column.name);
  std::string hint = DidYouMean(name, names);
  for (const int table : scope.tables) {
    if (tables_[static_cast<size_t>(table)].alias != name) continue;
    return Refusal(absl::StrCat("the whole row of ", Quote(name), " as a value is not supported"), position,
                   absl::StrCat("name its columns, or write ", name, ".*"));
  }
  if (hint.empty() && quoted) hint = "double quotes are for names; strings are written with single quotes";
  return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name), " does not exist"),
                   position, hint);
}

absl::StatusOr<Expr> NameResolver::Column(const Scope& scope, const std::vector<std::string>& name,
                                          int position, bool quoted) const {
  if (name.size() == 3 && name[0] == "public") {
    NAM_ASSIGN_OR_RETURN(const int table, Table(scope, name[1], position));
    if (tables_[static_cast<size_t>(table)].table->name() == name[1]) {
      return Qualified(scope, name[1], name[2], position);
    }
  }
  if (name.size() > 2) {
    return Refusal("column names with a schema are not supported", position, "write table.column");
  }
  if (name.size() == 2) return Qualified(scope, name[0], name[1], position);

  const Scope::Column* found = nullptr;
  for (const Scope::Column& column : scope.columns) {
    if (column.name != name[0]) continue;
    if (found != nullptr) {
      return UserError(sqlstate::kAmbiguousColumn, absl::StrCat("column ", Quote(name[0]), " is ambiguous"),
                       position,
                       absl::StrCat("write ", ColumnName(found->ref), " or ", ColumnName(column.ref)));
    }
    found = &column;
  }
  if (found == nullptr) return UnknownColumn(scope, name[0], position, quoted);
  return ColumnExpr(found->ref, position);
}

absl::StatusOr<std::vector<Scope::Column>> NameResolver::Star(const Scope& scope, const std::string& alias,
                                                              int position) const {
  NAM_ASSIGN_OR_RETURN(const int table, Table(scope, alias, position));
  std::vector<Scope::Column> columns;
  const proto::Table& definition = *tables_[static_cast<size_t>(table)].table;
  for (int i = 0; i < definition.columns_size(); ++i) {
    if (!definition.columns(i).hidden()) columns.push_back({definition.columns(i).name(), {table, i}});
  }
  return columns;
}

}  // namespace nam::sql
