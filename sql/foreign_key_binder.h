#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// Binds the foreign keys of a CREATE TABLE whose columns, key and indexes are bound. Borrows all.
class ForeignKeyBinder {
 public:
  /// `index_names`, `constraint_names`: those that the statement has given so far.
  ForeignKeyBinder(CreateTableStatement& statement, TableSource& tables, std::set<std::string>& index_names,
                   std::set<std::string>& constraint_names)
      : statement_(statement),
        table_(statement.table),
        tables_(tables),
        index_names_(index_names),
        constraint_names_(constraint_names) {}

  /// `column`: the constraint's column; empty: a table constraint.
  absl::Status Bind(const Node& constraint, const std::string& column);

 private:
  absl::StatusOr<std::shared_ptr<const proto::Table>> ParentOf(const Node& constraint);
  absl::StatusOr<std::vector<int>> ParentColumns(const Node& constraint, const proto::Table& parent) const;
  absl::Status FindParentKey(const proto::Table& parent, int position, proto::ForeignKey& key) const;
  absl::Status CheckTypes(const proto::Table& parent, int position, const proto::ForeignKey& key) const;
  absl::StatusOr<std::string> NameOf(const Node& constraint, const std::vector<int>& columns);
  absl::Status AddIndex(int position, proto::ForeignKey& key);

  CreateTableStatement& statement_;
  proto::Table& table_;
  TableSource& tables_;
  std::set<std::string>& index_names_;
  std::set<std::string>& constraint_names_;
};

/// Finds the tables that changes of a table involve: the parents of its foreign keys, and its children.
absl::Status BindReferences(TableSource& tables, BoundTable& table);

}  // namespace nam::sql
