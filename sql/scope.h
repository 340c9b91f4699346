#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"

namespace nam::sql {

/// What names mean in one place of a query: the tables of FROM, or of one side of a JOIN … ON. Ordered as
/// `select *` shows it; a column merged by USING is there once, as the left table's.
struct Scope {
  struct Column {
    std::string name;
    plan::ColumnRef ref;
  };
  std::vector<int> tables;  // positions among the tables of the statement
  std::vector<Column> columns;
};

/// Looks names up in a scope. Borrows the tables.
class NameResolver {
 public:
  explicit NameResolver(const std::vector<BoundTable>& tables) : tables_(tables) {}

  /// `name` as [table.]column or public.table.column. `quoted`: it was
  /// written in double quotes, perhaps for a string.
  absl::StatusOr<plan::Expr> Column(const Scope& scope, const std::vector<std::string>& name, int position,
                                    bool quoted) const;
  /// Whether an unqualified column of this name is there, once or more.
  static bool HasColumn(const Scope& scope, const std::string& name);
  /// Columns of `alias.*`.
  absl::StatusOr<std::vector<Scope::Column>> Star(const Scope& scope, const std::string& alias,
                                                  int position) const;

  plan::Expr ColumnExpr(plan::ColumnRef ref, int position) const;
  /// `t.x`, as messages show it.
  std::string ColumnName(plan::ColumnRef ref) const;
  const proto::Column& column(plan::ColumnRef ref) const;

 private:
  absl::StatusOr<int> Table(const Scope& scope, const std::string& alias, int position) const;
  absl::StatusOr<plan::Expr> Qualified(const Scope& scope, const std::string& alias, const std::string& name,
                                       int position) const;
  absl::Status UnknownColumn(const Scope& scope, const std::string& name, int position, bool quoted) const;

  const std::vector<BoundTable>& tables_;
};

}  // namespace nam::sql
