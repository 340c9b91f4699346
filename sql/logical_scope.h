#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/parse_tree.h"

namespace nam::sql {

class LogicalSelect;

/// A table, subquery or CTE of FROM, as the query calls it.
struct FromRelation {
  std::string alias;  // empty: the columns have no qualified names
  std::string table;  // the table's own name, for hints
  std::vector<plan::logical::Column> columns;
  bool reachable = true;  // false: LATERAL must not name it, as it stands left of RIGHT or FULL JOIN
};

/// What names mean in one place of a query: in all of FROM, or in the two sides of one JOIN … ON.
struct FromScope {
  std::vector<FromRelation> relations;
  /// As names without a table and `*` see them: a column merged by USING is there once.
  std::vector<plan::logical::Column> columns;

  void Add(const FromScope& other);
};

/// Scopes from the inside out: of a query, and of those that it is a subquery of. They live on the binder's
/// stack.
struct ScopeLevel {
  const FromScope* scope = nullptr;
  LogicalSelect* select = nullptr;  // whose FROM it is
  const ScopeLevel* outer = nullptr;
  /// FROM items that stand beside a subquery, which it would see if it were LATERAL: for messages.
  bool sealed = false;
};

/// The column that [table.]name or public.table.name means: of the innermost scope that has one.
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

/// Columns of a star as a select list names them one by one.
std::string WrittenOut(const FromScope& scope, const std::vector<plan::logical::Column>& columns);

/// `AS alias (names…)`: the columns with these names first. 42P10 if there are more names than columns.
absl::Status RenameColumns(const std::vector<std::string>& names, const std::string& alias, int position,
                           std::vector<plan::logical::Column>& columns);

}  // namespace nam::sql
