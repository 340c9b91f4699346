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

/// The column names to write in place of a `*`.
struct WrittenStar {
  int end = -1;  // of the star's words
  std::string columns;
};

/// The query of a column, an aggregate or a GROUPING that an expression names.
struct NamedQuery {
  LogicalSelect* select;
  bool aggregate;
};

/// The state of a whole statement's binding.
struct LogicalContext {
  TableSource& source;
  std::map<std::string, std::shared_ptr<const proto::Table>>
      found;                                                   // one version of a table that occurs twice
  std::map<int, std::shared_ptr<const proto::Table>> scanned;  // by relation
  std::vector<LogicalSelect*> owners;     // by relation: the select with it in FROM or groups; null: none
  std::vector<NamedQuery> queries_named;  // in the order in which the statement's expressions name them
  int ctes = 0;
  int depth = 0;            // of queries, FROM items and expressions being bound
  bool locks_rows = false;  // FOR UPDATE may stand in the outermost query
  absl::Status folding;     // the error of the first constant that could not be computed
  /// Where unqualified names are looked up; in a view that is being bound, the view's own. Borrowed.
  const std::vector<std::string>* search_path;
  std::set<int> view_items;  // positions of FROM items of the statement's own text that are views
  int views = 0;             // being bound, one inside the other
  std::vector<std::shared_ptr<ParsedStatement>> view_texts;  // nodes point into them
  /// For a view that is being made: the columns of each `*`, by the position of its words. Null: not wanted.
  std::map<int, WrittenStar>* stars = nullptr;
  std::map<std::string, std::shared_ptr<const proto::Table>> named;  // named by the statement's own text

  explicit LogicalContext(TableSource& tables)
      : source(tables), search_path(&tables.settings().search_path) {}

  /// The number of a new relation.
  int AddRelation(LogicalSelect* owner) {
    owners.push_back(owner);
    return static_cast<int>(owners.size()) - 1;
  }
  /// The table or view that a RangeVar names. 42P01 if there is none, with hints.
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const Node& relation);
  /// The same for a table; 42809 if it is a view.
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

/// A WITH query that later ones see.
struct CommonTable {
  std::string name;
  int number = -1;
  std::vector<plan::logical::Column> columns;  // the definition's
};
struct CommonTables {
  std::vector<std::unique_ptr<CommonTable>> tables;
  CommonTables* outer = nullptr;

  CommonTable* Find(const std::string& name);
};

/// The surroundings of a query: meanings of names beside its own FROM.
struct Surroundings {
  const ScopeLevel* level = nullptr;
  CommonTables* ctes = nullptr;
};

/// A query's tree. It treats untyped constants of the select list as text.
struct BoundTree {
  plan::logical::NodePtr root;
  /// By root's columns: the untyped literal, if it is one, for the caller to resolve.
  std::vector<std::optional<plan::Expr>> literals;
  std::vector<RowLock> locks;  // for root's rows
};

/// Binds a SelectStmt of any form.
absl::StatusOr<BoundTree> BindQuery(LogicalContext& context, const Surroundings& around, const Node& select);

/// Binds a SelectStmt that is a statement of its own, as BindLogical does with its text. `locks`: the locks
/// of FOR UPDATE; null: it is refused.
absl::StatusOr<plan::logical::Query> BindLogical(const Node& select, TableSource& tables,
                                                 std::vector<RowLock>* locks = nullptr);

/// Binds the query of a view that the RangeVar names, in place. Errors have the RangeVar's position.
absl::StatusOr<BoundTree> BindView(LogicalContext& context, const proto::Table& view, const Node& relation);

/// ORDER BY's direction and NULLs.
absl::Status BindDirection(const Node& sort_by, plan::OrderKey& key);

/// The expressions of LIMIT and OFFSET. They are evaluated last, as in PostgreSQL.
struct LimitCounts {
  std::optional<plan::Expr> rows, offset;
};
absl::StatusOr<LimitCounts> BindLimit(const Node& select, LogicalSelect& expressions);

/// Adds LIMIT and OFFSET.
absl::StatusOr<plan::logical::NodePtr> AddLimit(const Node& select, const LimitCounts& counts,
                                                plan::logical::NodePtr root);

/// The common type of these types. For expressions that Unify has converted.
Type CommonType(const Type& a, const Type& b);

}  // namespace nam::sql
