#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/expression_binder.h"
#include "sql/parse_tree.h"
#include "sql/scope.h"

namespace nam::sql {

/// Binds FROM: fills BoundQuery::tables, and sorts conditions into joins and conjuncts. Borrows all three.
class FromBinder {
 public:
  FromBinder(BoundQuery& query, TableSource& source, ExpressionBinder& expressions)
      : query_(query), source_(source), expressions_(expressions) {}

  /// Binds the FROM list; what it returns is what the rest of the query sees.
  absl::StatusOr<Scope> Bind(const std::vector<Node>& from);

  /// The one table of INSERT, UPDATE or DELETE.
  absl::StatusOr<Scope> BindTarget(const Node& relation) { return Table(relation); }

  /// Adds a condition that every row must meet.
  void AddCondition(plan::Expr condition);

  /// After the last condition: every table must be joined with the others.
  absl::Status CheckConnected() const;

 private:
  absl::StatusOr<Scope> Item(const Node& node);
  absl::StatusOr<Scope> Table(const Node& node);
  absl::StatusOr<Scope> Join(const Node& node);
  absl::StatusOr<Scope> Using(const Node& node, const Scope& left, const Scope& right);
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name, int position);

  BoundQuery& query_;
  TableSource& source_;
  ExpressionBinder& expressions_;
  std::vector<int> positions_;  // of BoundQuery::tables in the text
  int open_joins_ = 0;
  // A table that occurs twice is one version of it.
  std::map<std::string, std::shared_ptr<const proto::Table>> found_;
};

}  // namespace nam::sql
