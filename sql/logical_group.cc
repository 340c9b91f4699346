#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_place.h"
#include "sql/logical_select.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::Op;
using plan::OrderKey;
using plan::SameExpr;
using plan::logical::Column;
using plan::logical::Conjuncts;
using plan::logical::GroupingCall;
using plan::logical::MakeColumn;
using plan::logical::MakeNode;
using plan::logical::NodePtr;

// PostgreSQL's own bounds.
constexpr size_t kMostGroupingSets = 4096;
constexpr size_t kMostCubeItems = 12;
constexpr size_t kMostGroupingArguments = 31;

using Sets = std::vector<std::vector<uint32_t>>;

absl::Status TooManySets(int position) {
  return UserError(sqlstate::kTooComplex, "too many grouping sets", position,
                   absl::StrCat("at most ", kMostGroupingSets));
}

void AddKeys(std::vector<uint32_t>& set, const std::vector<uint32_t>& keys) {
  for (const uint32_t key : keys) {
    if (std::find(set.begin(), set.end(), key) == set.end()) set.push_back(key);
  }
}

/// Combines every set of one with every set of the other.
Sets Crossed(const Sets& a, const Sets& b) {
  Sets sets;
  for (const auto& left : a) {
    for (const auto& right : b) {
      sets.push_back(left);
      AddKeys(sets.back(), right);
    }
  }
  return sets;
}

Sets WithoutRepeats(Sets sets) {
  std::set<std::vector<uint32_t>> seen;
  Sets kept;
  for (const auto& set : sets) {
    std::vector<uint32_t> sorted = set;
    std::sort(sorted.begin(), sorted.end());
    if (seen.insert(std::move(sorted)).second) kept.push_back(set);
  }
  return kept;
}

bool NamesRelation(const Expr& expr, int relation) {
  if (expr.op == Op::kColumn) return expr.column.table == relation;
  return std::any_of(expr.children.begin(), expr.children.end(),
                     [&](const Expr& child) { return NamesRelation(child, relation); });
}

}  // namespace

absl::Status LogicalSelect::BindGroupBy() {
  const std::vector<Node> items = select_.List("groupClause");
  if (items.empty()) return absl::OkStatus();
  aggregated_ = true;
  const SavedPlace place(*this, Clause::kGroupBy);
  Sets all = {{}};
  bool sets = false;
  for (const Node& item : items) {
    sets = sets || item.Is("GroupingSet");
    NAM_ASSIGN_OR_RETURN(const Sets of_item, GroupingItem(item));
    if (all.size() * of_item.size() > kMostGroupingSets) return TooManySets(item.position());
    all = Crossed(all, of_item);
  }
  if (select_.Flag("groupDistinct")) all = WithoutRepeats(std::move(all));
  // One set of all keys is the same as the keys alone.
  if (sets && (all.size() > 1 || all[0].size() != groups_.keys.size())) groups_.sets = std::move(all);
  return absl::OkStatus();
}

absl::StatusOr<Sets> LogicalSelect::GroupingItem(const Node& item) {
  if (item.Is("GroupingSet")) {
    const NestingLevel level(context_, 1);
    NAM_RETURN_IF_ERROR(level.Check(item));
    return GroupingSet(item);
  }
  NAM_ASSIGN_OR_RETURN(std::vector<uint32_t> keys, Keys(item));
  return Sets{std::move(keys)};
}

absl::StatusOr<Sets> LogicalSelect::GroupingSet(const Node& set) {
  const std::string kind = set.Text("kind");
  const std::vector<Node> content = set.List("content");
  if (kind == "GROUPING_SET_EMPTY") return Sets{{}};
  Sets sets;
  if (kind == "GROUPING_SET_SETS") {
    for (const Node& item : content) {
      NAM_ASSIGN_OR_RETURN(const Sets of_item, GroupingItem(item));
      sets.insert(sets.end(), of_item.begin(), of_item.end());
      if (sets.size() > kMostGroupingSets) return TooManySets(set.position());
    }
    return sets;
  }
  std::vector<std::vector<uint32_t>> items;
  for (const Node& item : content) {
    NAM_ASSIGN_OR_RETURN(std::vector<uint32_t> keys, Keys(item));
    items.push_back(std::move(keys));
  }
  if (kind == "GROUPING_SET_ROLLUP") {
    for (size_t length = items.size() + 1; length-- > 0;) {
      sets.emplace_back();
      for (size_t i = 0; i < length; ++i) AddKeys(sets.back(), items[i]);
    }
    return sets;
  }
  if (kind != "GROUPING_SET_CUBE") return Refusal("this grouping set is not supported", set.position());
  if (items.size() > kMostCubeItems) {
    return UserError(sqlstate::kTooComplex, absl::StrCat("CUBE has at most ", kMostCubeItems, " elements"),
                     set.position(), "write the sets with GROUPING SETS");
  }
  for (size_t mask = size_t{1} << items.size(); mask-- > 0;) {
    sets.emplace_back();
    for (size_t i = 0; i < items.size(); ++i) {
      if ((mask >> (items.size() - 1 - i) & 1) != 0) AddKeys(sets.back(), items[i]);
    }
  }
  return sets;
}

/// An expression, or several in parentheses.
absl::StatusOr<std::vector<uint32_t>> LogicalSelect::Keys(const Node& item) {
  std::vector<Node> expressions = {item};
  if (item.Is("RowExpr")) expressions = item.List("args");
  std::vector<uint32_t> keys;
  for (const Node& expression : expressions) {
    NAM_ASSIGN_OR_RETURN(const uint32_t key, AddKey(expression));
    AddKeys(keys, {key});
  }
  return keys;
}

absl::StatusOr<uint32_t> LogicalSelect::AddKey(const Node& item) {
  NAM_ASSIGN_OR_RETURN(ListedItem listed, Item(item, Clause::kGroupBy));
  Expr& key = listed.expr;
  if (aggregate_relation_ >= 0 && NamesRelation(key, aggregate_relation_)) {
    return UserError(sqlstate::kGroupingError, "aggregates are not allowed in GROUP BY", item.position(),
                     "group by columns, and put conditions on aggregates into HAVING");
  }
  for (const WindowGroup& group : windows_) {
    if (!NamesRelation(key, group.relation)) continue;
    return UserError(sqlstate::kWindowingError, "window functions are not allowed in GROUP BY",
                     item.position(), "compute them in a subquery in FROM");
  }
  const int output = plan::IsConstant(key) ? listed.output : -1;
  size_t place = 0;
  while (place < groups_.keys.size() &&
         !(SameExpr(groups_.keys[place], key) && key_outputs_[place] == output)) {
    ++place;
  }
  if (place == groups_.keys.size()) {
    groups_.keys.push_back(std::move(key));
    key_outputs_.push_back(output);
  }
  return static_cast<uint32_t>(place);
}

absl::StatusOr<Expr> LogicalSelect::Grouping(const Node& node, Clause clause) {
  const int position = node.position();
  NAM_RETURN_IF_ERROR(node.Only({"args", "agglevelsup"}));
  if ((clause != Clause::kSelect && clause != Clause::kHaving && clause != Clause::kOrderBy) || in_from_) {
    return UserError(sqlstate::kGroupingError,
                     absl::StrCat("GROUPING is not allowed in ", ClauseName(clause)), position,
                     "it tells by which columns a group is grouped");
  }
  std::vector<Expr> arguments;
  for (const Node& argument : node.List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr bound, BindTyped(argument, clause));
    arguments.push_back(std::move(bound));
  }
  if (arguments.size() > kMostGroupingArguments) {
    return UserError(sqlstate::kTooManyArguments,
                     absl::StrCat("GROUPING has at most ", kMostGroupingArguments, " arguments"), position);
  }
  NeedAggregation();
  context_.queries_named.push_back({this, /*aggregate=*/true});
  grouping_refs_.push_back({aggregate_relation_, NextAggregateColumn()});
  groups_.groupings.emplace_back();
  grouping_arguments_.push_back(std::move(arguments));
  return MakeColumn({grouping_refs_.back(), "grouping", Type::Integer(), false}, position);
}

void LogicalSelect::NeedAggregation() {
  aggregated_ = true;
  if (aggregate_relation_ < 0) aggregate_relation_ = context_.AddRelation(this);
}

int LogicalSelect::NextAggregateColumn() const {
  return static_cast<int>(aggregate_refs_.size() + grouping_refs_.size());
}

/// The keys that GROUPING names are only known after all keys.
absl::Status LogicalSelect::FinishGroupings() {
  for (size_t i = 0; i < grouping_arguments_.size(); ++i) {
    for (const Expr& argument : grouping_arguments_[i]) {
      const auto same = [&](const Expr& key) { return SameExpr(key, argument); };
      const auto found = std::find_if(groups_.keys.begin(), groups_.keys.end(), same);
      if (found == groups_.keys.end()) {
        return UserError(sqlstate::kGroupingError, "GROUPING takes expressions of this query's GROUP BY",
                         argument.position, "name one of them");
      }
      groups_.groupings[i].keys.push_back(static_cast<uint32_t>(found - groups_.keys.begin()));
    }
  }
  return absl::OkStatus();
}

/// Constants make no further groups beside other keys; alone they make one group, or none without rows.
void LogicalSelect::DropConstantKeys() {
  const auto constant = [](const Expr& key) { return plan::IsConstant(key); };
  const bool all = std::all_of(groups_.keys.begin(), groups_.keys.end(), constant);
  if (!all && groups_.sets.empty() && groups_.groupings.empty()) std::erase_if(groups_.keys, constant);
}

absl::StatusOr<NodePtr> LogicalSelect::BuildAggregate(NodePtr root) {
  aggregated_ = true;
  NAM_RETURN_IF_ERROR(FinishGroupings());
  DropConstantKeys();
  key_relation_ = context_.AddRelation(this);
  std::vector<const Expr*> users;
  for (const Expr& key : groups_.keys) users.push_back(&key);
  for (const auto& call : groups_.aggregates) {
    users.push_back(&call.argument);
    users.push_back(&call.second);
    if (call.filter.has_value()) users.push_back(&*call.filter);
  }
  for (const auto& order : aggregate_orders_) {
    for (const OrderKey& key : order) users.push_back(&key.expr);
  }
  root = Attach(std::move(root), users);
  for (size_t i = 0; i < groups_.aggregates.size(); ++i) {
    plan::logical::AggregateCall& call = groups_.aggregates[i];
    const bool by_parts = call.argument.type.packed() || call.long_sum;
    if (call.distinct && by_parts && groups_.sets.empty() && call.function != plan::AggregateFunction::kCount)
      root = BuildPackedAggregate(call, std::move(root));
    if (call.function != plan::AggregateFunction::kStringAggregate) continue;
    NAM_ASSIGN_OR_RETURN(root, BuildStringAggregate(call, std::move(aggregate_orders_[i]), std::move(root)));
  }
  NAM_RETURN_IF_ERROR(ReplaceAllGroups());
  std::vector<Column> columns;
  for (size_t i = 0; i < groups_.keys.size(); ++i)
    columns.push_back({{key_relation_, static_cast<int>(i)}, "", groups_.keys[i].type, true});
  for (size_t i = 0; i < groups_.aggregates.size(); ++i)
    columns.push_back({aggregate_refs_[i], "", groups_.aggregates[i].type, true});
  for (const plan::ColumnRef ref : grouping_refs_) columns.push_back({ref, "", Type::Integer(), false});
  root = MakeNode(std::move(groups_), std::move(columns), std::move(root));
  if (!having_.has_value()) return root;
  return Filtered(std::move(root), Conjuncts(*std::move(having_)));
}

namespace {

plan::logical::Window WindowOver(std::vector<Expr> partition, std::vector<OrderKey> order) {
  plan::logical::Window window;
  window.partition = std::move(partition);
  window.order = std::move(order);
  return window;
}

plan::logical::WindowCall& AddCall(plan::logical::Window& window, plan::logical::WindowFunction function,
                                   int relation) {
  plan::logical::WindowCall& added = window.calls.emplace_back();
  added.function = function;
  added.result = {{relation, static_cast<int>(window.calls.size()) - 1}, "", Type::Integer(), true};
  return added;
}

/// The value in the rows where the condition holds, otherwise NULL.
Expr Where(Expr condition, Expr value) {
  const Type type = value.type;
  return plan::MakeNode(Op::kCase, type, -1,
                        {std::move(condition), std::move(value), plan::MakeLiteral(Value::Null(type), -1)});
}

Expr OfFirst(const Column& number, Expr value) {
  Expr first = plan::MakeNode(Op::kEqual, Type::Bool(), -1,
                              {MakeColumn(number), plan::MakeLiteral(Value::Integer(1), -1)});
  return Where(std::move(first), std::move(value));
}

/// Computes nothing for the rows that FILTER drops.
void FilterArguments(plan::logical::AggregateCall& call, std::vector<OrderKey>& order) {
  if (!call.filter.has_value()) return;
  call.argument = Where(*call.filter, std::move(call.argument));
  if (!plan::IsConstant(call.second)) call.second = Where(*call.filter, std::move(call.second));
  for (OrderKey& key : order) {
    if (!plan::IsConstant(key.expr)) key.expr = Where(*call.filter, std::move(key.expr));
  }
  call.filter.reset();
}

}  // namespace

/// Makes all but the first of each group's equal arguments NULL.
NodePtr LogicalSelect::LeaveOutRepeats(plan::logical::AggregateCall& call, std::vector<OrderKey> order,
                                       NodePtr root) {
  std::vector<Expr> partition = groups_.keys;
  partition.push_back(call.argument);
  if (!plan::IsConstant(call.second)) partition.push_back(call.second);
  plan::logical::Window repeats = WindowOver(std::move(partition), std::move(order));
  const Column number =
      AddCall(repeats, plan::logical::WindowFunction::kRowNumber, context_.AddRelation(nullptr)).result;
  call.argument = OfFirst(number, std::move(call.argument));
  call.distinct = false;
  return MakeNode(std::move(repeats), {}, std::move(root));
}

/// Equal values may have different bits: adds up the least of these, as texts.
NodePtr LogicalSelect::BuildPackedAggregate(plan::logical::AggregateCall& call, NodePtr root) {
  std::vector<OrderKey> order;
  FilterArguments(call, order);
  order.push_back({.expr = plan::MakeNode(Op::kCast, Type::String(), -1, {call.argument})});
  return LeaveOutRepeats(call, std::move(order), std::move(root));
}

/// A window over each group computes string_agg, in its order; the group takes it from the first row.
absl::StatusOr<NodePtr> LogicalSelect::BuildStringAggregate(plan::logical::AggregateCall& call,
                                                            std::vector<OrderKey> order, NodePtr root) {
  if (!groups_.sets.empty())
    return Refusal("string_agg with grouping sets is not supported", call.argument.position);
  using plan::logical::WindowFunction;
  FilterArguments(call, order);
  if (call.distinct) root = LeaveOutRepeats(call, {}, std::move(root));
  plan::logical::Window window = WindowOver(groups_.keys, std::move(order));
  const int relation = context_.AddRelation(nullptr);
  const Column number = AddCall(window, WindowFunction::kRowNumber, relation).result;
  plan::logical::WindowCall& joined = AddCall(window, WindowFunction::kAggregate, relation);
  joined.aggregate = call;
  joined.frame = {.unit = plan::logical::Frame::Unit::kRows,
                  .start = {},
                  .end = {plan::logical::FrameBound::Kind::kUnboundedFollowing, {}}};
  joined.result.type = call.type;
  joined.result.declared = call.declared;
  const Column text = joined.result;
  root = MakeNode(std::move(window), {}, std::move(root));
  call = {.function = plan::AggregateFunction::kMax,
          .argument = OfFirst(number, MakeColumn(text)),
          .type = call.type};
  return root;
}

absl::Status LogicalSelect::Ungrouped(const Expr& column, bool in_subquery) const {
  std::string name = "?";
  for (const FromRelation& relation : from_.relations) {
    if (const Column* found = FindColumn(relation.columns, column.column))
      name = relation.alias.empty() ? found->name : absl::StrCat(relation.alias, ".", found->name);
  }
  if (in_subquery) {
    return UserError(
        sqlstate::kGroupingError,
        absl::StrCat("a subquery uses column ", Quote(name), " of this query, which is not grouped"),
        column.position, absl::StrCat("add ", name, " to GROUP BY"));
  }
  return UserError(
      sqlstate::kGroupingError,
      absl::StrCat("column ", Quote(name), " must appear in GROUP BY or be used in an aggregate"),
      column.position, absl::StrCat("add ", name, " to GROUP BY, or write min(", name, ")"));
}

/// Replaces an expression by the group's column; other columns belong to no group.
absl::Status LogicalSelect::ReplaceGroups(Expr& expr, bool in_subquery) {
  if (expr.op == Op::kLiteral) return absl::OkStatus();
  for (size_t i = 0; i < groups_.keys.size(); ++i) {
    if (!SameExpr(groups_.keys[i], expr)) continue;
    if (!groups_.sets.empty() && plan::IsConstant(expr)) return absl::OkStatus();
    expr = MakeColumn({{key_relation_, static_cast<int>(i)}, "", expr.type, true, DeclaredType(expr)},
                      expr.position);
    return absl::OkStatus();
  }
  if (expr.op == Op::kColumn) {
    const int relation = expr.column.table;
    const bool own = context_.owners[static_cast<size_t>(relation)] == this;
    if (own && relation != aggregate_relation_ && relation != key_relation_) {
      if (!FollowsFromKeys(expr.column)) return Ungrouped(expr, in_subquery);
      groups_.keys.push_back(expr);  // each group has one value of it
      return ReplaceGroups(expr, in_subquery);
    }
  }
  for (Expr& child : expr.children) NAM_RETURN_IF_ERROR(ReplaceGroups(child, in_subquery));
  return absl::OkStatus();
}

/// Replaces an output, or what is that output. A constant key is NULL in the sets without it: as its own
/// output, not where the same constant stands otherwise.
absl::Status LogicalSelect::ReplaceListed(Expr& expr, int output) {
  const auto key = std::find(key_outputs_.begin(), key_outputs_.end(), output);
  if (output < 0 || key == key_outputs_.end() || groups_.sets.empty()) return ReplaceGroups(expr, false);
  const auto place = static_cast<int>(key - key_outputs_.begin());
  expr = MakeColumn({{key_relation_, place}, "", expr.type, true, DeclaredType(expr)}, expr.position);
  return absl::OkStatus();
}

/// Whether the groups' keys hold the primary key of the column's table.
bool LogicalSelect::FollowsFromKeys(plan::ColumnRef column) const {
  const auto scanned = context_.scanned.find(column.table);
  if (scanned == context_.scanned.end() || !groups_.sets.empty()) return false;
  const proto::Table& table = *scanned->second;
  const auto& key = table.record().primary_key();
  return !key.empty() && std::all_of(key.begin(), key.end(), [&](const std::string& name) {
    return std::any_of(groups_.keys.begin(), groups_.keys.end(), [&](const Expr& grouped) {
      return grouped.op == Op::kColumn && grouped.column.table == column.table &&
             grouped.column.column < table.columns_size() &&
             table.columns(grouped.column.column).name() == name;
    });
  });
}

absl::Status LogicalSelect::ReplaceGroupsBelow(plan::logical::Node& root) {
  absl::Status status;
  ForExpressions(root, [&](Expr& expr) {
    if (status.ok()) status = ReplaceGroups(expr, true);
  });
  for (NodePtr& input : root.inputs) {
    if (status.ok()) status = ReplaceGroupsBelow(*input);
  }
  return status;
}

absl::Status LogicalSelect::ReplaceAllGroups() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    NAM_RETURN_IF_ERROR(ReplaceListed(outputs_[i].expr, static_cast<int>(i)));
    if (outputs_[i].expr.op == Op::kColumn) outputs_[i].literal.reset();
  }
  if (having_.has_value()) NAM_RETURN_IF_ERROR(ReplaceGroups(*having_, false));
  for (size_t i = 0; i < order_by_.size(); ++i)
    NAM_RETURN_IF_ERROR(ReplaceListed(order_by_[i].expr, order_outputs_[i]));
  for (Expr& key : distinct_on_) NAM_RETURN_IF_ERROR(ReplaceGroups(key, false));
  for (WindowGroup& group : windows_) {
    plan::logical::Node node;
    node.op = std::move(group.window);
    absl::Status status;
    ForExpressions(node, [&](Expr& expr) {
      if (status.ok()) status = ReplaceGroups(expr, false);
    });
    group.window = std::move(*node.As<plan::logical::Window>());
    NAM_RETURN_IF_ERROR(status);
  }
  // Subqueries not attached yet stand above the groups.
  for (Subquery& subquery : subqueries_) {
    if (subquery.plan == nullptr) continue;
    NAM_RETURN_IF_ERROR(ReplaceGroupsBelow(*subquery.plan));
    for (Expr& compared : subquery.compared) NAM_RETURN_IF_ERROR(ReplaceGroups(compared, false));
  }
  return absl::OkStatus();
}

}  // namespace nam::sql
