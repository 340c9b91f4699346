#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/bound_query.h"
#include "sql/column_values.h"
#include "sql/logical_query.h"
#include "sql/logical_select.h"
#include "sql/logical_with.h"

namespace nam::sql {

/// 42P01 if there is no such table, 42501 if it is the system's, 0A000 unless it is a record table.
/// `statement` names the changing statement: INSERT adds rows to columnar tables, too.
absl::Status CheckTarget(LogicalContext& context, const Node& relation, const char* statement);

/// The rows of UPDATE and DELETE: the target's, joined with FROM or USING, and the expressions over them, in
/// which the target's columns are those of table 0. Without another table or a subquery the statement needs
/// no tree.
class ChangeScope {
 public:
  explicit ChangeScope(TableSource& source)
      : context_(source), with_(context_, Surroundings()), select_(context_, {nullptr, &with_.tables()}) {}

  /// `with`: the statement's WITH, if any. The target is a table whatever WITH defines.
  absl::Status BindFrom(const Node& relation, const Node& with, const std::vector<Node>& others,
                        const char* statement);
  absl::Status BindWhere(const Node& where);
  /// The value of SET for a single column, perhaps without a type yet.
  absl::StatusOr<plan::Expr> BindValue(const Node& node);
  absl::StatusOr<std::vector<plan::Expr>> BindRow(const Node& subquery, size_t width);
  /// `changed`: the target's columns whose values the statement changes. Subqueries see the old values, and
  /// must not name them. nullopt: the statement makes the row, and subqueries may not name it.
  absl::StatusOr<std::vector<OutputColumn>> BindReturning(const std::vector<Node>& list,
                                                          const std::optional<std::set<int>>& changed);

  bool needs_tree() const { return joined_ || asks_; }
  const proto::Table& table() const { return *table_.table; }
  const BoundTable& bound_table() const { return table_; }
  ExpressionBuilder& builder() { return select_.builder(); }
  /// The first error in computing a constant of the statement.
  const absl::Status& folding() const { return context_.folding; }
  /// Returns the conditions of a statement without a tree.
  std::vector<plan::Expr> TakeConditions() { return std::move(conditions_); }
  /// Returns the tree of a statement with one. Its columns are all columns of the target, the values, then
  /// the columns of other tables that `returning` names, which become those of table 1.
  ChangeSource TakeSource(std::vector<plan::Expr> values, std::vector<OutputColumn>& returning);

 private:
  static constexpr int kTarget = 0;  // the context's first relation

  absl::Status BindTarget(const Node& relation, const char* statement);
  absl::Status AddStar(const Node& value, std::vector<OutputColumn>& out);
  absl::Status AskReturning(const plan::Expr& expr, const std::optional<std::set<int>>& changed,
                            int position);
  void Ask(const plan::Expr& expr) { asks_ = asks_ || select_.UsesSubquery(expr); }

  LogicalContext context_;
  WithBinder with_;
  LogicalSelect select_;
  FromScope scope_;
  BoundTable table_;
  plan::logical::NodePtr root_;
  std::vector<plan::Expr> conditions_;
  bool joined_ = false, asks_ = false;
};

}  // namespace nam::sql
