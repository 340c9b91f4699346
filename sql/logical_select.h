#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/expression_binder.h"
#include "sql/logical_query.h"
#include "sql/logical_scope.h"
#include "sql/parse_tree.h"
#include "sql/row_lock_binder.h"

namespace nam::sql {

/// Binds one SELECT … FROM … [WHERE, GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT] to
///
///     FROM → filter → aggregate → filter → window … → project → distinct → sort → limit → project
///
/// and the parts that its expressions need: columns, aggregates, window functions, subqueries. A subquery in
/// an expression is a column of a join that is inserted below the first operator that needs the column.
class LogicalSelect : public QueryScope {
 public:
  LogicalSelect(LogicalContext& context, const Surroundings& around);

  absl::StatusOr<BoundTree> Bind(const Node& select);

  /// QueryScope: columns, aggregates, window functions, GROUPING and subqueries.
  std::optional<absl::StatusOr<plan::Expr>> BindInQuery(const Node& node, Clause clause, int depth) override;
  absl::StatusOr<std::vector<plan::Expr>> BindRowOf(const Node& sublink, size_t width, int depth) override;

  /// Sees the scope during its lifetime; for JOIN … ON not yet all of FROM: `beside` stands left of it.
  class Within {
   public:
    Within(LogicalSelect& select, const FromScope& scope, const FromScope* beside = nullptr)
        : select_(select), before_(select.scope_), beside_before_(select.beside_) {
      select_.scope_ = &scope;
      select_.beside_ = beside;
    }
    ~Within() {
      select_.scope_ = before_;
      select_.beside_ = beside_before_;
    }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    LogicalSelect& select_;
    const FromScope* const before_;
    const FromScope* const beside_before_;
  };

  absl::StatusOr<plan::Expr> BindBoolean(const Node& node, Clause clause);
  absl::StatusOr<plan::Expr> BindTyped(const Node& node, Clause clause);
  absl::StatusOr<plan::Expr> BindUntyped(const Node& node, Clause clause);
  /// The columns of a subquery with at most one row: several columns are assigned from it.
  absl::StatusOr<std::vector<plan::Expr>> BindRowSubquery(const Node& node, size_t width);
  ExpressionBuilder& builder() { return expressions_.builder(); }
  LogicalContext& context() { return context_; }
  const Surroundings& around() const { return around_; }

  /// Joins the subqueries that the expressions use to the input, unless that was done below.
  plan::logical::NodePtr Attach(plan::logical::NodePtr input, const std::vector<const plan::Expr*>& users);
  /// Whether an expression uses a subquery that is not attached yet.
  bool UsesSubquery(const plan::Expr& expr) const;
  /// The outer columns that the expression's subqueries need.
  plan::logical::ColumnSet NeedsOfSubqueries(const plan::Expr& expr) const;

 private:
  using ExprOr = absl::StatusOr<plan::Expr>;

  /// A subquery of an expression. Its plan moves to the tree when it is attached.
  struct Subquery {
    plan::logical::NodePtr plan;
    plan::JoinKind kind = plan::JoinKind::kSingle;
    std::vector<plan::Expr> compared;
    plan::logical::ColumnSet results;  // one; several for a row
  };
  struct Output {
    std::string name;
    plan::Expr expr;
    std::optional<plan::Expr> literal;
  };
  /// An item of GROUP BY, ORDER BY or DISTINCT ON. Equal constants are told apart by their outputs.
  struct ListedItem {
    plan::Expr expr;
    int output = -1;  // that it is; -1: none
  };
  /// Window functions of one partition and order.
  struct WindowGroup {
    plan::logical::Window window;
    int relation = -1;
  };
  /// OVER (…) or WINDOW w AS (…), with inherited parts.
  struct WindowDefinition {
    std::vector<plan::Expr> partition;
    std::vector<plan::OrderKey> order;
    std::optional<Node> frame;  // the node that writes it
  };

  // logical_select.cc
  absl::Status BindSelectList();
  absl::StatusOr<plan::logical::NodePtr> BindWhere(plan::logical::NodePtr root);
  absl::Status AddStar(const Node& column, const std::vector<std::string>& table);
  void WriteOut(int position, const std::string& columns, std::map<int, WrittenStar>& stars) const;
  absl::StatusOr<const Output*> ByPosition(const Node& constant, const char* clause);
  absl::StatusOr<const Output*> ByAlias(const std::string& name, int position, const char* clause);
  ListedItem Listed(const Output& output) const;
  absl::StatusOr<ListedItem> Item(const Node& node, Clause clause);
  absl::Status BindOrderBy();
  absl::Status BindDistinct();
  absl::Status CheckDistinctOrder() const;
  absl::Status BindLocks();
  void AddLockedKeys(plan::logical::Project& project, std::vector<plan::logical::Column>& columns,
                     BoundTree& tree) const;
  plan::logical::NodePtr Filtered(plan::logical::NodePtr root, std::vector<plan::Expr> conditions);
  absl::StatusOr<plan::logical::NodePtr> BuildWindows(plan::logical::NodePtr root);
  absl::StatusOr<BoundTree> BuildResult(plan::logical::NodePtr root);
  plan::Expr ResultColumn(const plan::Expr& expr, plan::logical::Project& project,
                          std::vector<plan::logical::Column>& columns) const;
  ExprOr ColumnExpr(const Node& node);

  // logical_group.cc
  absl::Status BindGroupBy();
  using Sets = std::vector<std::vector<uint32_t>>;
  absl::StatusOr<Sets> GroupingItem(const Node& item);
  absl::StatusOr<Sets> GroupingSet(const Node& set);
  absl::StatusOr<std::vector<uint32_t>> Keys(const Node& item);
  absl::StatusOr<uint32_t> AddKey(const Node& item);
  absl::StatusOr<plan::logical::NodePtr> BuildAggregate(plan::logical::NodePtr root);
  plan::logical::NodePtr LeaveOutRepeats(plan::logical::AggregateCall& call,
                                         std::vector<plan::OrderKey> order, plan::logical::NodePtr root);
  plan::logical::NodePtr BuildPackedAggregate(plan::logical::AggregateCall& call,
                                              plan::logical::NodePtr root);
  absl::StatusOr<plan::logical::NodePtr> BuildStringAggregate(plan::logical::AggregateCall& call,
                                                              std::vector<plan::OrderKey> order,
                                                              plan::logical::NodePtr root);
  absl::Status ReplaceGroups(plan::Expr& expr, bool in_subquery);
  absl::Status ReplaceListed(plan::Expr& expr, int output);
  absl::Status ReplaceGroupsBelow(plan::logical::Node& root);
  absl::Status ReplaceAllGroups();
  bool FollowsFromKeys(plan::ColumnRef column) const;
  absl::Status Ungrouped(const plan::Expr& column, bool in_subquery) const;
  ExprOr Grouping(const Node& node, Clause clause);
  void NeedAggregation();
  int NextAggregateColumn() const;
  absl::Status FinishGroupings();
  void DropConstantKeys();

  // logical_calls.cc
  std::optional<ExprOr> Call(const Node& node, Clause clause);
  ExprOr AggregateExpr(const Node& node, const std::string& name, Clause clause);
  absl::StatusOr<plan::logical::AggregateCall> AggregateArguments(const Node& node, const std::string& name,
                                                                  Clause clause);
  absl::StatusOr<plan::logical::AggregateCall> CountOfRows(const Node& star,
                                                           plan::logical::AggregateCall call,
                                                           const Node& node);
  bool IsNeverNullInTable(plan::ColumnRef ref) const;
  absl::Status BindPair(const Node& node, const std::string& name, Clause clause,
                        plan::logical::AggregateCall& call);
  void NameColumn(plan::ColumnRef ref);
  absl::StatusOr<LogicalSelect*> OwnerOf(size_t first_named, int position);
  void MoveSubqueries(size_t first, LogicalSelect& owner);
  absl::Status MayAggregate(int position) const;
  absl::StatusOr<std::vector<plan::OrderKey>> OrderOfArguments(const Node& node,
                                                               const plan::logical::AggregateCall& call,
                                                               Clause clause);
  plan::Expr AddAggregate(plan::logical::AggregateCall call, std::vector<plan::OrderKey> order, int position);

  // logical_window.cc
  absl::Status MayUseWindows(const Node& node, const std::string& name) const;
  absl::Status ResolveArguments(plan::logical::WindowCall& call, const std::string& name, int position);
  ExprOr WindowExpr(const Node& node, const std::string& name, Clause clause);
  absl::StatusOr<plan::logical::WindowCall> WindowArguments(const Node& node, const std::string& name,
                                                            Clause clause);
  absl::Status BindWindowClause();
  absl::StatusOr<WindowDefinition> Over(const Node& over, Clause clause);
  absl::StatusOr<Node> NamedWindow(const std::string& name, int position) const;
  absl::StatusOr<plan::logical::Frame> FrameOf(const WindowDefinition& definition, Clause clause);
  absl::StatusOr<Value> FrameOffset(const Node& node, const WindowDefinition& definition,
                                    plan::logical::Frame::Unit unit, Clause clause);

  // logical_subquery.cc
  ExprOr SubqueryExpr(const Node& node, Clause clause);
  ExprOr Quantified(const Node& node, plan::logical::NodePtr plan, Clause clause);
  plan::Expr AddSubquery(Subquery subquery, const Type& type, int position);

  LogicalContext& context_;
  const Surroundings around_;
  ExpressionBinder expressions_;
  Node select_;
  FromScope from_;
  const FromScope* scope_ = &from_;
  const FromScope* beside_ = nullptr;  // items of FROM that expressions must not name; null: none
  Clause clause_ = Clause::kSelect;    // being bound
  bool in_from_ = false;
  bool in_aggregate_ = false, in_window_ = false;

  std::vector<Output> outputs_;
  std::vector<plan::OrderKey> order_by_;
  std::vector<int> order_outputs_;  // by key in order_by_: the output that it is; -1: none
  std::vector<plan::Expr> distinct_on_;
  bool distinct_ = false;
  std::optional<plan::Expr> having_;
  LimitCounts limit_;
  std::vector<LockedRelation> locked_;

  bool aggregated_ = false;
  int key_relation_ = -1, aggregate_relation_ = -1;
  plan::logical::Aggregate groups_;
  std::vector<int> key_outputs_;  // by key in groups_: the output that a constant one is; -1: another one
  std::vector<plan::ColumnRef> aggregate_refs_, grouping_refs_;
  std::vector<std::vector<plan::OrderKey>> aggregate_orders_;  // by aggregate in groups_: string_agg's
  std::vector<std::vector<plan::Expr>> grouping_arguments_;    // by grouping in groups_, until keys are known
  std::vector<WindowGroup> windows_;
  absl::Status windowing_;  // the error in OVER (…)
  std::vector<Subquery> subqueries_;
  friend class SavedPlace;
};

/// Whether it is `*` or `t.*`.
bool EndsInStar(const Node& node);

/// Whether the function of this name needs OVER.
bool IsWindowFunction(const std::string& name);

/// FROM's tree; `scope` becomes the rest of the query's. `left`: the items before, which are `scope`'s.
absl::StatusOr<plan::logical::NodePtr> BindFrom(LogicalSelect& select, const std::vector<Node>& from,
                                                FromScope& scope, plan::logical::NodePtr left = nullptr);

/// generate_series' arguments, over the columns to its left. The caller names `result`.
absl::StatusOr<plan::logical::Series> BindSeries(LogicalSelect& select, const Node& call,
                                                 const FromScope& left);

}  // namespace nam::sql
