#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/parse_tree.h"

namespace nam::sql {

class LogicalSelect;

/// A table, subquery or CTE of FROM, under its name in the query.
struct FromRelation {
  std::string alias;  // empty: the columns have no qualified names
  std::string table;  // the table's own name, for hints
  std::vector<plan::logical::Column> columns;
  /// Of files: the names of the first columns as they write them, which columns may be called by, too.
  std::vector<std::string> written;
  bool reachable = true;  // false: LATERAL must not name it, as it stands left of RIGHT or FULL JOIN
};

/// The meanings of names in one place of a query: in all of FROM, or in the two sides of one JOIN … ON.
struct FromScope {
  std::vector<FromRelation> relations;
  /// Columns for unqualified names and `*`: one merged by USING occurs once.
  std::vector<plan::logical::Column> columns;

  void Add(const FromScope& other);
};

/// Scopes from the inside out: a query's, and those of the queries around it. They live on the binder's
/// stack.
struct ScopeLevel {
  const FromScope* scope = nullptr;
  LogicalSelect* select = nullptr;  // the select of this FROM
  const ScopeLevel* outer = nullptr;
  /// FROM items beside a subquery, which it would see if it were LATERAL: for messages.
  bool sealed = false;
};

/// The column that [table.]name or public.table.name means: from the innermost scope that has one.
absl::StatusOr<plan::logical::Column> ResolveColumn(const ScopeLevel& level,
                                                    const std::vector<std::string>& name, int position,
                                                    bool quoted);

/// The column that a ColumnRef names.
absl::StatusOr<plan::logical::Column> ResolveColumn(const ScopeLevel& level, const Node& node);

/// Whether the scope has unqualified columns of this name, one or more.
bool HasColumn(const FromScope& scope, const std::string& name);

/// The columns of `alias.*`.
absl::StatusOr<std::vector<plan::logical::Column>> ResolveStar(const ScopeLevel& level,
                                                               const std::vector<std::string>& table,
                                                               int position);

/// A star's columns, written out for a select list.
std::string WrittenOut(const FromScope& scope, const std::vector<plan::logical::Column>& columns);

/// `AS alias (names…)`: gives the first columns these names. 42P10 if there are more names than columns.
absl::Status RenameColumns(const std::vector<std::string>& names, const std::string& alias, int position,
                           std::vector<plan::logical::Column>& columns);

}  // namespace nam::sql
