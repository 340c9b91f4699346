#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/bound_query.h"
#include "sql/logical_scope.h"
#include "sql/parse_tree.h"

/// Queries inside a statement: WITH, set operations, VALUES, and plain selects (sql/logical_select.h).
namespace nam::sql {

/// What holds for a whole statement. Lives as long as its binding.
struct LogicalContext {
  TableSource& source;
  std::map<std::string, std::shared_ptr<const proto::Table>>
      found;                                                   // a table that occurs twice is one version
  std::map<int, std::shared_ptr<const proto::Table>> scanned;  // by relation
  std::vector<LogicalSelect*> owners;  // by relation: the select whose FROM or groups it is; null: nobody's
  int ctes = 0;
  int depth = 0;            // of queries, FROM items and expressions that are being bound
  bool locks_rows = false;  // FOR UPDATE may stand in the outermost query
  absl::Status folding;     // why the first constant that could not be computed could not
  /// Where an unqualified name is looked up; of a view that is being bound, its own. Borrowed.
  const std::vector<std::string>* search_path;
  std::set<int> view_items;  // positions of FROM items of the statement's own text that are views
  int views = 0;             // that are being bound, one inside the other
  std::vector<std::shared_ptr<ParsedStatement>> view_texts;  // that nodes point into
  /// Of a view that is being made: what each `*` stands for, by its position. Null: nobody asks.
  std::map<int, std::string>* stars = nullptr;
  std::map<std::string, std::shared_ptr<const proto::Table>> named;  // by the statement's own text

  explicit LogicalContext(TableSource& tables)
      : source(tables), search_path(&tables.settings().search_path) {}

  /// The number of a new relation.
  int AddRelation(LogicalSelect* owner) {
    owners.push_back(owner);
    return static_cast<int>(owners.size()) - 1;
  }
  /// The table or view that a RangeVar names. 42P01 if there is none, and hints.
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const Node& relation);
  /// The same of a table; 42809 if it is a view.
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindTable(const Node& relation);
};

/// Counts one more level of nesting while it lives.
class NestingLevel {
 public:
  NestingLevel(LogicalContext& context, int weight) : context_(context), weight_(weight) {
    context_.depth += weight_;
  }
  ~NestingLevel() { context_.depth -= weight_; }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;
  /// 54001 if it is one too many, at the node.
  absl::Status Check(const Node& node) const;

 private:
  LogicalContext& context_;
  const int weight_;
};

/// A WITH query that those behind it see.
struct CommonTable {
  std::string name;
  int number = -1;
  std::vector<plan::logical::Column> columns;  // of the definition
};
struct CommonTables {
  std::vector<std::unique_ptr<CommonTable>> tables;
  CommonTables* outer = nullptr;

  CommonTable* Find(const std::string& name);
};

/// Where a query stands: what its names may mean beside its own FROM.
struct Surroundings {
  const ScopeLevel* level = nullptr;
  CommonTables* ctes = nullptr;
};

/// A query's tree. The select list's constants that have no type yet are text in it.
struct BoundTree {
  plan::logical::NodePtr root;
  /// As root's columns: the untyped literal that one is, for whom it meets to settle.
  std::vector<std::optional<plan::Expr>> literals;
  std::vector<RowLock> locks;  // of root's rows
};

/// A SelectStmt of any form.
absl::StatusOr<BoundTree> BindQuery(LogicalContext& context, const Surroundings& around, const Node& select);

/// A SelectStmt, of a statement of its own. As BindLogical of its text. `locks`: what FOR UPDATE locks; null:
/// it is refused.
absl::StatusOr<plan::logical::Query> BindLogical(const Node& select, TableSource& tables,
                                                 std::vector<RowLock>* locks = nullptr);

/// The query of a view that the RangeVar names, bound where it stands. Positions of errors are the
/// RangeVar's.
absl::StatusOr<BoundTree> BindView(LogicalContext& context, const proto::Table& view, const Node& relation);

/// ORDER BY's direction and NULLs.
absl::Status BindDirection(const Node& sort_by, plan::OrderKey& key);

/// What LIMIT and OFFSET hold, where they are written. Their values are asked last, as in PostgreSQL.
struct LimitCounts {
  std::optional<plan::Expr> rows, offset;
};
absl::StatusOr<LimitCounts> BindLimit(const Node& select, LogicalSelect& expressions);

/// Adds LIMIT and OFFSET.
absl::StatusOr<plan::logical::NodePtr> AddLimit(const Node& select, const LimitCounts& counts,
                                                plan::logical::NodePtr root);

/// The type that columns of these types have together. Of expressions that Unify has converted.
Type CommonType(const Type& a, const Type& b);

}  // namespace nam::sql
