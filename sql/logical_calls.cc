#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_place.h"
#include "sql/logical_select.h"
#include "sql/number_digits.h"
#include "types/sql_error.h"

/// Aggregates, each bound in the query whose rows it aggregates.
namespace nam::sql {
namespace {

using plan::AggregateFunction;
using plan::Expr;
using plan::SameExpr;
using plan::logical::AggregateCall;
using plan::logical::MakeColumn;

bool SameCall(const AggregateCall& a, const AggregateCall& b) {
  if (a.function != b.function || a.distinct != b.distinct || a.filter.has_value() != b.filter.has_value())
    return false;
  return SameExpr(a.argument, b.argument) && SameExpr(a.second, b.second) &&
         (!a.filter.has_value() || SameExpr(*a.filter, *b.filter));
}

absl::Status Nested(int position) {
  return UserError(sqlstate::kGroupingError, "aggregates cannot be nested", position,
                   "compute the inner one in a subquery in FROM");
}

bool SameOrder(const std::vector<plan::OrderKey>& a, const std::vector<plan::OrderKey>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.descending == y.descending && x.nulls_first == y.nulls_first && SameExpr(x.expr, y.expr);
  });
}

/// Whether functions of several types have its name, none of which is best for an untyped argument.
bool IsAmbiguous(AggregateFunction function) {
  return function == AggregateFunction::kSum || function == AggregateFunction::kAverage ||
         function == AggregateFunction::kBitAnd || function == AggregateFunction::kBitOr ||
         function == AggregateFunction::kBitXor;
}

absl::Status RefuseClauses(const Node& node) {
  const int position = node.position();
  const SqlText& text = node.text();
  if (node.Flag("agg_within_group"))
    return Refusal("WITHIN GROUP is not supported", text.Find({"within", "group"}, position));
  if (node.Flag("func_variadic"))
    return Refusal("VARIADIC is not supported", text.Find({"variadic"}, position));
  return node.Only(
      {"funcname", "args", "agg_star", "agg_distinct", "agg_filter", "agg_order", "funcformat", "over"});
}

}  // namespace

std::optional<absl::StatusOr<Expr>> LogicalSelect::Call(const Node& node, Clause clause) {
  const std::vector<std::string> names = node.Names("funcname");
  if (names.empty() || (names.size() > 1 && names[0] != "pg_catalog")) return std::nullopt;
  const std::string& name = names.back();
  const auto& aggregates = AggregateNames();
  const bool aggregate = std::find(aggregates.begin(), aggregates.end(), name) != aggregates.end();
  if (node.Has("over") || IsWindowFunction(name)) return WindowExpr(node, name, clause);
  if (aggregate) return AggregateExpr(node, name, clause);
  return std::nullopt;
}

absl::StatusOr<Expr> LogicalSelect::AggregateExpr(const Node& node, const std::string& name, Clause clause) {
  const int position = node.position();
  NAM_RETURN_IF_ERROR(RefuseClauses(node));
  const size_t named_before = context_.queries_named.size(), subqueries_before = subqueries_.size();
  NAM_ASSIGN_OR_RETURN(AggregateCall call, AggregateArguments(node, name, clause));
  NAM_ASSIGN_OR_RETURN(std::vector<plan::OrderKey> order, OrderOfArguments(node, call, clause));
  NAM_ASSIGN_OR_RETURN(LogicalSelect* const owner, OwnerOf(named_before, position));
  NAM_RETURN_IF_ERROR(owner->MayAggregate(position));
  MoveSubqueries(subqueries_before, *owner);
  context_.queries_named.push_back({owner, /*aggregate=*/true});
  return owner->AddAggregate(std::move(call), std::move(order), position);
}

/// ORDER BY in the call; it only matters to string_agg.
absl::StatusOr<std::vector<plan::OrderKey>> LogicalSelect::OrderOfArguments(const Node& node,
                                                                            const AggregateCall& call,
                                                                            Clause clause) {
  const SavedPlace place(*this, clause_);
  in_aggregate_ = true;
  std::vector<plan::OrderKey> order;
  for (const Node& item : node.List("agg_order")) {
    plan::OrderKey key;
    NAM_RETURN_IF_ERROR(BindDirection(item, key));
    NAM_ASSIGN_OR_RETURN(key.expr, BindTyped(item.Field("node"), clause));
    const bool is_argument = SameExpr(key.expr, call.argument) ||
                             (SameExpr(key.expr, call.second) && !plan::IsConstant(call.second));
    if (call.distinct && !is_argument) {
      return UserError(sqlstate::kBadColumnReference,
                       "in an aggregate with DISTINCT, ORDER BY expressions must be its arguments",
                       item.position(), "order by its arguments");
    }
    order.push_back(std::move(key));
  }
  if (call.function != AggregateFunction::kStringAggregate) return std::vector<plan::OrderKey>();
  if (!call.distinct) return order;
  // The arguments, first to last, decide open types.
  for (const Expr* argument : {&call.argument, &call.second}) {
    const bool ordered = std::any_of(
        order.begin(), order.end(), [&](const plan::OrderKey& key) { return SameExpr(key.expr, *argument); });
    if (!ordered && !plan::IsConstant(*argument)) order.push_back({.expr = *argument});
  }
  return order;
}

absl::StatusOr<AggregateCall> LogicalSelect::AggregateArguments(const Node& node, const std::string& name,
                                                                Clause clause) {
  const int position = node.position();
  const SavedPlace place(*this, clause_);
  if (!node.Has("over")) in_aggregate_ = true;
  AggregateCall call;
  call.function = AggregateOfName(name);
  if (node.Has("agg_filter")) {
    NAM_ASSIGN_OR_RETURN(call.filter, BindBoolean(node.Field("agg_filter"), clause));
    if (IsBoolLiteral(*call.filter, true)) call.filter.reset();
  }
  call.type = Type::Integer();
  call.declared = SqlType::BigInt();
  if (node.Flag("agg_star")) {
    call.function = AggregateFunction::kCountRows;
    if (name == "count") return call;
    return UserError(sqlstate::kNoSuchOperator, absl::StrCat("function does not exist: ", name, "(*)"),
                     position, "only count takes *");
  }
  const std::vector<Node> args = node.List("args");
  const bool counts_pairs = name == "regr_count";
  const size_t takes = counts_pairs ? 2 : plan::ArgumentsOf(call.function);
  if (args.empty() && name == "count")
    return UserError(sqlstate::kWrongObjectType, "count takes an argument", position, "count(*) counts rows");
  if (args.size() != takes) {
    return UserError(sqlstate::kNoSuchOperator,
                     absl::StrCat(name, " takes ", takes, " argument(s), not ", args.size()), position);
  }
  if (counts_pairs || (takes == 2 && plan::HasMoments(call.function))) {
    NAM_RETURN_IF_ERROR(BindPair(node, name, clause, call));
    return call;
  }
  if (name == "count" && EndsInStar(args[0])) return CountOfRows(args[0], std::move(call), node);
  const bool of_truths =
      call.function == AggregateFunction::kBoolAnd || call.function == AggregateFunction::kBoolOr;
  if (of_truths) {
    NAM_ASSIGN_OR_RETURN(call.argument, BindUntyped(args[0], clause));
    NAM_RETURN_IF_ERROR(builder().ResolveType(call.argument, Type::Bool()));
  } else {
    NAM_ASSIGN_OR_RETURN(call.argument, BindUntyped(args[0], clause));
    if (ExpressionBuilder::IsUntyped(call.argument) && IsAmbiguous(call.function)) {
      return UserError(sqlstate::kAmbiguousFunction,
                       absl::StrCat("function ", name, "(unknown) is not unique"), position,
                       "give the argument a type with CAST");
    }
    const Type open = plan::HasMoments(call.function) ? Type::Double() : Type::String();
    NAM_RETURN_IF_ERROR(builder().ResolveType(call.argument, open));
  }
  if (args.size() > 1) {
    NAM_ASSIGN_OR_RETURN(call.second, BindTyped(args[1], clause));
  }
  // A time is added up as the span since midnight.
  const bool adds_up =
      call.function == AggregateFunction::kSum || call.function == AggregateFunction::kAverage;
  if (adds_up && call.argument.type.kind == TypeKind::kTime) {
    NAM_ASSIGN_OR_RETURN(call.argument, builder().Cast(std::move(call.argument), Type::Interval(), position));
  }
  NAM_ASSIGN_OR_RETURN(call.type, AggregateType(call.function, call.argument, call.second, name, position));
  call.declared = DeclaredAggregate(call.function, call.argument);
  call.long_sum = IsLongSum(call.function, call.argument);
  if (call.long_sum) call.type = Type::Numeric();
  if (call.argument.type.kind == TypeKind::kReal && plan::HasMoments(call.function)) {
    NAM_ASSIGN_OR_RETURN(call.argument, builder().Cast(std::move(call.argument), Type::Double(), position));
  }
  call.distinct = node.Flag("agg_distinct") && !plan::IgnoresRepeats(call.function);
  if (call.function == AggregateFunction::kCount && !call.distinct && IsLiteral(call.argument) &&
      !call.argument.literal.null) {
    call.function = AggregateFunction::kCountRows;
    call.argument = Expr();
  }
  return call;
}

/// count(t.*): counts rows that no outer join made up, by a column that is never NULL.
absl::StatusOr<AggregateCall> LogicalSelect::CountOfRows(const Node& star, AggregateCall call,
                                                         const Node& node) {
  const int position = star.position();
  if (node.Flag("agg_distinct"))
    return Refusal("count(DISTINCT t.*) is not supported", position,
                   "count rows of a SELECT DISTINCT in FROM");
  std::vector<std::string> table = star.Names("fields");
  table.pop_back();
  if (table.empty())
    return UserError(sqlstate::kSyntaxError, "count takes an argument", position, "count(*) counts rows");
  ScopeLevel level;
  level.scope = scope_;
  level.select = this;
  level.outer = around_.level;
  NAM_ASSIGN_OR_RETURN(const std::vector<plan::logical::Column> columns, ResolveStar(level, table, position));
  const auto never_null = [&](const plan::logical::Column& column) { return IsNeverNullInTable(column.ref); };
  const auto found = std::find_if(columns.begin(), columns.end(), never_null);
  if (found == columns.end()) {
    return Refusal("count(t.*) of a table without a column that is NOT NULL is not supported", position,
                   "count a column, or use count(*)");
  }
  NameColumn(found->ref);
  call.argument = MakeColumn(*found, position);
  return call;
}

/// Whether the column is a table's without NULLs, before joins.
bool LogicalSelect::IsNeverNullInTable(plan::ColumnRef ref) const {
  const auto table = context_.scanned.find(ref.table);
  return table != context_.scanned.end() && !table->second->columns(ref.column).nullable();
}

/// Binds pairs of numbers: both exact, or both double precision.
absl::Status LogicalSelect::BindPair(const Node& node, const std::string& name, Clause clause,
                                     AggregateCall& call) {
  const int position = node.position();
  const std::vector<Node> args = node.List("args");
  if (node.Flag("agg_distinct"))
    return Refusal(absl::StrCat(name, "(DISTINCT …) is not supported"), position);
  for (const auto& [arg, expr] : {std::pair(&args[0], &call.argument), std::pair(&args[1], &call.second)}) {
    NAM_ASSIGN_OR_RETURN(*expr, BindUntyped(*arg, clause));
    NAM_RETURN_IF_ERROR(builder().ResolveType(*expr, Type::Double()));
  }
  const bool counts = call.function == AggregateFunction::kCount;
  NAM_ASSIGN_OR_RETURN(const Type type, AggregateType(counts ? AggregateFunction::kCorr : call.function,
                                                      call.argument, call.second, name, position));
  if (counts) {
    Expr there = plan::MakeNode(
        plan::Op::kNot, Type::Bool(), position,
        {plan::MakeNode(plan::Op::kIsNull, Type::Bool(), position, {std::exchange(call.second, Expr())})});
    const Type of = call.argument.type;
    call.argument =
        plan::MakeNode(plan::Op::kCase, of, position,
                       {std::move(there), std::move(call.argument), plan::MakeLiteral(Value::Null(of), -1)});
    return absl::OkStatus();
  }
  call.type = type;
  call.declared = {};
  if (call.argument.type.numeric() && call.second.type.numeric()) return absl::OkStatus();
  for (Expr* expr : {&call.argument, &call.second}) {
    if (expr->type == Type::Double()) continue;
    NAM_ASSIGN_OR_RETURN(*expr, builder().Cast(std::move(*expr), Type::Double(), position));
  }
  return absl::OkStatus();
}

void LogicalSelect::NameColumn(plan::ColumnRef ref) {
  LogicalSelect* const owner = context_.owners[static_cast<size_t>(ref.table)];
  context_.queries_named.push_back({owner == nullptr ? this : owner, /*aggregate=*/false});
}

/// The innermost query, from this one outwards, that an aggregate's operands name a column or an aggregate
/// of: in subqueries and in what is folded away, too. This one if they name none.
absl::StatusOr<LogicalSelect*> LogicalSelect::OwnerOf(size_t first_named, int position) {
  const auto begin = context_.queries_named.begin() + static_cast<std::ptrdiff_t>(first_named);
  const auto end = context_.queries_named.end();
  const auto named = [&](const LogicalSelect* select) {
    return std::any_of(begin, end, [&](const NamedQuery& query) { return query.select == select; });
  };
  LogicalSelect* owner = named(this) ? this : nullptr;
  for (const ScopeLevel* level = around_.level; owner == nullptr && level != nullptr; level = level->outer) {
    if (level->select != nullptr && named(level->select)) owner = level->select;
  }
  if (owner == nullptr) return this;
  const auto nested = [&](const NamedQuery& query) { return query.aggregate && query.select == owner; };
  if (std::any_of(begin, end, nested)) return Nested(position);
  return owner;
}

/// The subqueries of an aggregate's operands are joined where its rows are.
void LogicalSelect::MoveSubqueries(size_t first, LogicalSelect& owner) {
  if (&owner == this) return;
  const auto begin = subqueries_.begin() + static_cast<std::ptrdiff_t>(first);
  std::move(begin, subqueries_.end(), std::back_inserter(owner.subqueries_));
  subqueries_.erase(begin, subqueries_.end());
}

absl::Status LogicalSelect::MayAggregate(int position) const {
  if (in_aggregate_) {
    // The call itself is bound outside of its arguments' place.
    return Nested(position);
  }
  if (in_from_ && clause_ != Clause::kOn) {
    return UserError(sqlstate::kGroupingError, "aggregates of a query are not allowed in its own FROM",
                     position, "compute them in a subquery in FROM");
  }
  if (clause_ == Clause::kSelect || clause_ == Clause::kHaving || clause_ == Clause::kOrderBy)
    return absl::OkStatus();
  const bool where = clause_ == Clause::kWhere || clause_ == Clause::kOn;
  return UserError(sqlstate::kGroupingError,
                   absl::StrCat("aggregates are not allowed in ", ClauseName(clause_)), position,
                   where ? "conditions on aggregates go to HAVING" : "");
}

Expr LogicalSelect::AddAggregate(AggregateCall call, std::vector<plan::OrderKey> order, int position) {
  NeedAggregation();
  size_t place = 0;
  while (place < groups_.aggregates.size() &&
         !(SameCall(groups_.aggregates[place], call) && SameOrder(aggregate_orders_[place], order))) {
    ++place;
  }
  const Type type = call.type;
  const SqlType declared = call.declared;
  if (place == groups_.aggregates.size()) {
    aggregate_refs_.push_back({aggregate_relation_, NextAggregateColumn()});
    groups_.aggregates.push_back(std::move(call));
    aggregate_orders_.push_back(std::move(order));
  }
  return MakeColumn({aggregate_refs_[place], "", type, true, declared}, position);
}

}  // namespace nam::sql
