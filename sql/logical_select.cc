#include "sql/logical_select.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_place.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::Op;
using plan::OrderKey;
using plan::SameExpr;
using plan::logical::Column;
using plan::logical::Conjuncts;
using plan::logical::Distinct;
using plan::logical::Limit;
using plan::logical::MakeColumn;
using plan::logical::MakeFilter;
using plan::logical::MakeNode;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::Sort;

constexpr size_t kMostOutputs = 1664;  // PostgreSQL's own bound

bool IsBareName(const Node& node) {
  const std::vector<Node> fields = node.Is("ColumnRef") ? node.List("fields") : std::vector<Node>();
  return fields.size() == 1 && fields[0].Is("String");
}

std::vector<const Expr*> Pointers(const std::vector<Expr>& list) {
  std::vector<const Expr*> users;
  for (const Expr& expr : list) users.push_back(&expr);
  return users;
}

}  // namespace

bool EndsInStar(const Node& node) {
  const std::vector<Node> fields = node.Is("ColumnRef") ? node.List("fields") : std::vector<Node>();
  return !fields.empty() && fields.back().Is("A_Star");
}

LogicalSelect::LogicalSelect(LogicalContext& context, const Surroundings& around)
    : context_(context), around_(around), expressions_(*this) {
  builder().DeferFolding(&context.folding);
}

absl::StatusOr<Expr> LogicalSelect::BindUntyped(const Node& node, Clause clause) {
  const SavedPlace place(*this, clause);
  return expressions_.BindUntyped(node, clause);
}

absl::StatusOr<Expr> LogicalSelect::BindTyped(const Node& node, Clause clause) {
  const SavedPlace place(*this, clause);
  return expressions_.Bind(node, clause);
}

absl::StatusOr<Expr> LogicalSelect::BindBoolean(const Node& node, Clause clause) {
  const SavedPlace place(*this, clause);
  return expressions_.BindBoolean(node, clause);
}

std::optional<absl::StatusOr<Expr>> LogicalSelect::BindInQuery(const Node& node, Clause clause, int depth) {
  if (node.Is("ColumnRef")) return ColumnExpr(node);
  if (node.Is("FuncCall")) return Call(node, clause);
  if (node.Is("GroupingFunc")) return Grouping(node, clause);
  if (!node.Is("SubLink")) return std::nullopt;
  const NestingLevel level(context_, depth);
  if (absl::Status status = level.Check(node); !status.ok()) return status;
  return SubqueryExpr(node, clause);
}

absl::StatusOr<Expr> LogicalSelect::ColumnExpr(const Node& node) {
  const int position = node.position();
  const ScopeLevel beside{.scope = beside_, .select = this, .outer = around_.level, .sealed = true};
  ScopeLevel level;
  level.scope = scope_;
  level.select = this;
  level.outer = beside_ == nullptr ? around_.level : &beside;
  NAM_ASSIGN_OR_RETURN(const plan::logical::Column column, ResolveColumn(level, node));
  NameColumn(column.ref);
  return MakeColumn(column, position);
}

/// Binds clauses in PostgreSQL's order: of two errors it reports the first one.
absl::StatusOr<BoundTree> LogicalSelect::Bind(const Node& select) {
  select_ = select;
  builder().UseZone(select.text().time().zone);
  NAM_RETURN_IF_ERROR(
      select.Only({"distinctClause", "targetList", "fromClause", "whereClause", "groupClause",
                   "groupDistinct", "havingClause", "windowClause", "sortClause", "limitOffset", "limitCount",
                   "limitOption", "lockingClause", "op", "withClause"}));
  in_from_ = true;
  NAM_ASSIGN_OR_RETURN(NodePtr root, BindFrom(*this, select.List("fromClause"), from_));
  in_from_ = false;
  subqueries_.clear();  // those of ON are attached, or were folded away
  NAM_RETURN_IF_ERROR(BindSelectList());
  NAM_ASSIGN_OR_RETURN(root, BindWhere(std::move(root)));
  if (select.Has("havingClause")) {
    NAM_ASSIGN_OR_RETURN(having_, BindBoolean(select.Field("havingClause"), Clause::kHaving));
  }
  NAM_RETURN_IF_ERROR(BindOrderBy());
  NAM_RETURN_IF_ERROR(BindGroupBy());
  NAM_RETURN_IF_ERROR(BindDistinct());
  NAM_RETURN_IF_ERROR(CheckDistinctOrder());
  NAM_ASSIGN_OR_RETURN(limit_, BindLimit(select, *this));
  NAM_RETURN_IF_ERROR(BindWindowClause());
  NAM_RETURN_IF_ERROR(BindLocks());
  if (aggregated_ || having_.has_value()) {
    NAM_ASSIGN_OR_RETURN(root, BuildAggregate(std::move(root)));
  }
  NAM_ASSIGN_OR_RETURN(root, BuildWindows(std::move(root)));
  return BuildResult(std::move(root));
}

absl::StatusOr<NodePtr> LogicalSelect::BindWhere(NodePtr root) {
  if (!select_.Has("whereClause")) return root;
  const auto of_select_list = static_cast<std::ptrdiff_t>(subqueries_.size());
  NAM_ASSIGN_OR_RETURN(Expr where, BindBoolean(select_.Field("whereClause"), Clause::kWhere));
  root = Filtered(std::move(root), Conjuncts(std::move(where)));
  // Those of WHERE are attached, or were folded away.
  subqueries_.erase(subqueries_.begin() + of_select_list, subqueries_.end());
  return root;
}

/// Conditions without subqueries come first: fewer rows evaluate the others.
NodePtr LogicalSelect::Filtered(NodePtr root, std::vector<Expr> conditions) {
  const auto asks = std::stable_partition(conditions.begin(), conditions.end(),
                                          [&](const Expr& condition) { return !UsesSubquery(condition); });
  std::vector<Expr> with_subqueries(std::make_move_iterator(asks), std::make_move_iterator(conditions.end()));
  conditions.erase(asks, conditions.end());
  root = MakeFilter(std::move(root), std::move(conditions));
  root = Attach(std::move(root), Pointers(with_subqueries));
  return MakeFilter(std::move(root), std::move(with_subqueries));
}

absl::Status LogicalSelect::AddStar(const Node& column, const std::vector<std::string>& table) {
  const int position = column.position();
  ScopeLevel level;
  level.scope = scope_;
  level.select = this;
  level.outer = around_.level;
  if (table.empty() && !select_.Has("fromClause")) {
    return UserError(sqlstate::kSyntaxError, "SELECT * needs a table", position, "name one in FROM");
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<plan::logical::Column> columns, ResolveStar(level, table, position));
  for (const plan::logical::Column& c : columns)
    outputs_.push_back({c.name, MakeColumn(c, position), std::nullopt});
  if (context_.stars != nullptr && context_.views == 0)
    WriteOut(position, WrittenOut(*scope_, columns), *context_.stars);
  return absl::OkStatus();
}

/// `TABLE t` and `FROM 'file'` have a star without a position: their first word becomes a SELECT … FROM.
void LogicalSelect::WriteOut(int position, const std::string& columns,
                             std::map<int, WrittenStar>& stars) const {
  const SqlText& text = select_.text();
  if (position >= 0) {
    stars[position] = {text.Find({"*"}, position) + 1, columns};
    return;
  }
  const int table = select_.List("fromClause").at(0).position();
  const int word = std::max(text.FindBefore("table", table), text.FindBefore("from", table));
  stars[word] = {text.Find({}, word + 1), absl::StrCat("SELECT ", columns, " FROM ")};
}

absl::Status LogicalSelect::BindSelectList() {
  for (const Node& target : select_.List("targetList")) {
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    const Node value = target.Field("val");
    if (EndsInStar(value)) {
      std::vector<std::string> table = value.Names("fields");
      table.pop_back();
      NAM_RETURN_IF_ERROR(AddStar(value, table));
    } else {
      NAM_ASSIGN_OR_RETURN(Expr expr, BindUntyped(value, Clause::kSelect));
      Output output{target.Has("name") ? target.Text("name") : OutputName(value), expr, std::nullopt};
      if (ExpressionBuilder::IsUntyped(expr)) {
        output.literal = expr;
        output.expr.index = -1;  // a parameter's: the query's user may give it another type
        NAM_RETURN_IF_ERROR(builder().ResolveType(output.expr, Type::String()));
      }
      outputs_.push_back(std::move(output));
    }
    if (outputs_.size() > kMostOutputs) {
      return UserError(sqlstate::kTooComplex, "too many columns in the select list", value.position(),
                       absl::StrCat("at most ", kMostOutputs));
    }
  }
  return absl::OkStatus();
}

/// The output at the position of an integer constant.
absl::StatusOr<const LogicalSelect::Output*> LogicalSelect::ByPosition(const Node& constant,
                                                                       const char* clause) {
  if (!constant.Has("ival")) {
    return UserError(sqlstate::kSyntaxError, absl::StrCat("a constant in ", clause, " must be a position"),
                     constant.position(), "name a column, or count the select list's columns from 1");
  }
  const int64_t index = constant.text().IntegerAt(constant.position());
  if (index < 1 || index > static_cast<int64_t>(outputs_.size())) {
    return UserError(sqlstate::kBadColumnReference,
                     absl::StrCat(clause, " position ", index, " is not in the select list"),
                     constant.position(), absl::StrCat("it has ", outputs_.size(), " columns"));
  }
  return &outputs_[static_cast<size_t>(index) - 1];
}

/// The output of this name; null if there is none, an error if two differ.
absl::StatusOr<const LogicalSelect::Output*> LogicalSelect::ByAlias(const std::string& name, int position,
                                                                    const char* clause) {
  const Output* found = nullptr;
  for (const Output& output : outputs_) {
    if (output.name != name) continue;
    if (found != nullptr && !SameExpr(found->expr, output.expr)) {
      return UserError(sqlstate::kAmbiguousColumn, absl::StrCat(clause, " ", Quote(name), " is ambiguous"),
                       position, "two columns of the select list have this name");
    }
    if (found == nullptr) found = &output;
  }
  return found;
}

LogicalSelect::ListedItem LogicalSelect::Listed(const Output& output) const {
  return {output.expr, static_cast<int>(&output - outputs_.data())};
}

/// GROUP BY prefers a table's column to an output's name; ORDER BY and DISTINCT ON the other way round.
absl::StatusOr<LogicalSelect::ListedItem> LogicalSelect::Item(const Node& node, Clause clause) {
  const char* name = ClauseName(clause);
  if (node.Is("A_Const")) {
    NAM_ASSIGN_OR_RETURN(const Output* output, ByPosition(node, name));
    return Listed(*output);
  }
  if (IsBareName(node)) {
    const std::string column = node.Names("fields")[0];
    if (clause == Clause::kOrderBy || !HasColumn(from_, column)) {
      NAM_ASSIGN_OR_RETURN(const Output* output, ByAlias(column, node.position(), name));
      if (output != nullptr) return Listed(*output);
    }
  }
  NAM_ASSIGN_OR_RETURN(Expr expr, BindTyped(node, clause));
  const auto same = [&](const Output& output) { return SameExpr(output.expr, expr); };
  const auto found = std::find_if(outputs_.begin(), outputs_.end(), same);
  if (found != outputs_.end()) return ListedItem{std::move(expr), static_cast<int>(found - outputs_.begin())};
  return ListedItem{std::move(expr)};
}

absl::Status BindDirection(const Node& sort, OrderKey& key) {
  if (sort.Text("sortby_dir") == "SORTBY_USING") {
    return Refusal("ORDER BY … USING is not supported", sort.text().FindBefore("using", sort.position()),
                   "use ASC or DESC");
  }
  NAM_RETURN_IF_ERROR(sort.Only({"node", "sortby_dir", "sortby_nulls"}));
  key.descending = sort.Text("sortby_dir") == "SORTBY_DESC";
  const std::string nulls = sort.Text("sortby_nulls");
  key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (nulls != "SORTBY_NULLS_LAST" && key.descending);
  return absl::OkStatus();
}

absl::Status LogicalSelect::BindOrderBy() {
  for (const Node& sort : select_.List("sortClause")) {
    OrderKey key;
    NAM_RETURN_IF_ERROR(BindDirection(sort, key));
    NAM_ASSIGN_OR_RETURN(ListedItem item, Item(sort.Field("node"), Clause::kOrderBy));
    key.expr = std::move(item.expr);
    if (key.expr.position < 0) key.expr.position = sort.Field("node").position();
    const bool may_vary = plan::IsConstant(key.expr) && select_.Has("groupClause");
    const auto same = [&](const OrderKey& other) {
      const int output = order_outputs_[static_cast<size_t>(&other - order_by_.data())];
      return SameExpr(other.expr, key.expr) && (!may_vary || output == item.output);
    };
    if (std::any_of(order_by_.begin(), order_by_.end(), same)) continue;
    order_by_.push_back(std::move(key));
    order_outputs_.push_back(item.output);
  }
  return absl::OkStatus();
}

absl::Status LogicalSelect::BindDistinct() {
  distinct_ = select_.Has("distinctClause");
  for (const Node& item : select_.List("distinctClause")) {
    if (!item || item.kind().empty()) continue;  // a plain DISTINCT is an empty list
    NAM_ASSIGN_OR_RETURN(ListedItem listed, Item(item, Clause::kOrderBy));
    Expr& key = listed.expr;
    const auto same = [&](const Expr& other) { return SameExpr(other, key); };
    if (std::none_of(distinct_on_.begin(), distinct_on_.end(), same)) distinct_on_.push_back(std::move(key));
  }
  return absl::OkStatus();
}

/// The first one of equal rows must not depend on the order of the work.
absl::Status LogicalSelect::CheckDistinctOrder() const {
  if (!distinct_) return absl::OkStatus();
  const auto among = [](const auto& list, const Expr& expr, auto&& of) {
    return std::any_of(list.begin(), list.end(), [&](const auto& item) { return SameExpr(of(item), expr); });
  };
  if (distinct_on_.empty()) {
    for (const OrderKey& key : order_by_) {
      if (among(outputs_, key.expr, [](const Output& output) -> const Expr& { return output.expr; }))
        continue;
      return UserError(sqlstate::kBadColumnReference,
                       "with SELECT DISTINCT, ORDER BY takes only what is in the select list",
                       key.expr.position, "add it to the select list");
    }
    return absl::OkStatus();
  }
  size_t matched = 0;
  for (const OrderKey& key : order_by_) {
    const bool member = among(distinct_on_, key.expr, [](const Expr& on) -> const Expr& { return on; });
    matched += member ? 1 : 0;
    if (member || matched == distinct_on_.size()) continue;
    return UserError(sqlstate::kBadColumnReference,
                     "the expressions of SELECT DISTINCT ON must be the first ones of ORDER BY",
                     key.expr.position, "begin ORDER BY with them");
  }
  return absl::OkStatus();
}

/// The rows of the result must be rows of the tables.
absl::Status LogicalSelect::BindLocks() {
  const std::vector<Node> clauses = select_.List("lockingClause");
  if (clauses.empty()) return absl::OkStatus();
  const LockingWords clause = WordsOf(clauses[0]);
  const char* const beside = distinct_                    ? "DISTINCT clause"
                             : select_.Has("groupClause") ? "GROUP BY clause"
                             : having_.has_value()        ? "HAVING clause"
                             : aggregated_                ? "aggregate functions"
                             : !windows_.empty()          ? "window functions"
                                                          : nullptr;
  if (beside != nullptr) {
    return Refusal(absl::StrCat(clause.words, " is not allowed with ", beside), clause.position,
                   "lock the rows by a SELECT of their own");
  }
  NAM_ASSIGN_OR_RETURN(locked_, BindRowLocks(context_, around_, this, select_));
  return absl::OkStatus();
}

/// Adds the primary keys of the rows to lock.
void LogicalSelect::AddLockedKeys(Project& project, std::vector<plan::logical::Column>& columns,
                                  BoundTree& tree) const {
  for (const LockedRelation& locked : locked_) {
    const std::shared_ptr<const proto::Table>& table = context_.scanned.at(locked.relation);
    tree.locks.push_back({table, static_cast<int>(columns.size()), locked.waits});
    for (const uint32_t part : partitioner::KeyColumnsOf(*table)) {
      const proto::Column& column = table->columns(static_cast<int>(part));
      const Column key{
          {locked.relation, static_cast<int>(part)}, column.name(), ColumnTypeOf(column.type()), false};
      columns.push_back({{columns.empty() ? context_.AddRelation(nullptr) : columns[0].ref.table,
                          static_cast<int>(columns.size())},
                         key.name,
                         key.type,
                         true});
      project.outputs.push_back(MakeColumn(key));
      tree.literals.emplace_back();
    }
  }
}

absl::StatusOr<NodePtr> LogicalSelect::BuildWindows(NodePtr root) {
  for (WindowGroup& group : windows_) {
    NodePtr window = MakeNode(std::move(group.window), {}, plan::logical::MakeOneRow());
    std::vector<const Expr*> users;
    ForExpressions(std::as_const(*window), [&](const Expr& expr) { users.push_back(&expr); });
    window->inputs[0] = Attach(std::move(root), users);
    DeriveColumns(*window);
    root = std::move(window);
  }
  return root;
}

/// The result's column with this value, added if there is none.
Expr LogicalSelect::ResultColumn(const Expr& expr, Project& project,
                                 std::vector<plan::logical::Column>& columns) const {
  const auto same = [&](const Expr& output) { return SameExpr(output, expr); };
  const auto found = std::find_if(project.outputs.begin(), project.outputs.end(), same);
  const size_t place = static_cast<size_t>(found - project.outputs.begin());
  if (found == project.outputs.end()) {
    columns.push_back(
        {{columns.empty() ? context_.AddRelation(nullptr) : columns[0].ref.table, static_cast<int>(place)},
         "?column?",
         expr.type,
         true,
         DeclaredType(expr)});
    project.outputs.push_back(expr);
  }
  return MakeColumn(columns[place], expr.position);
}

absl::StatusOr<BoundTree> LogicalSelect::BuildResult(NodePtr root) {
  BoundTree tree;
  Project project;
  std::vector<plan::logical::Column> columns;
  const int relation = context_.AddRelation(nullptr);
  std::vector<const Expr*> users;
  for (const Output& output : outputs_) users.push_back(&output.expr);
  for (const OrderKey& key : order_by_) users.push_back(&key.expr);
  for (const Expr& key : distinct_on_) users.push_back(&key);
  root = Attach(std::move(root), users);
  for (Output& output : outputs_) {
    columns.push_back({{relation, static_cast<int>(columns.size())},
                       output.name,
                       output.expr.type,
                       true,
                       DeclaredType(output.expr)});
    project.outputs.push_back(std::move(output.expr));
    // DISTINCT compares a literal as text, so it does not wait for another type.
    if (distinct_ && distinct_on_.empty()) output.literal.reset();
    tree.literals.push_back(std::move(output.literal));
  }
  AddLockedKeys(project, columns, tree);
  const size_t kept = project.outputs.size();
  Distinct distinct;
  for (const Expr& key : distinct_on_) distinct.on.push_back(ResultColumn(key, project, columns));
  Sort sort;
  for (const OrderKey& key : order_by_) {
    OrderKey by = key;
    by.expr = ResultColumn(key.expr, project, columns);
    sort.keys.push_back(std::move(by));
  }
  const size_t hidden = project.outputs.size() - kept;
  root = MakeNode(std::move(project), std::move(columns), std::move(root));
  if (distinct_) {
    if (!distinct.on.empty()) distinct.order = sort.keys;
    root = MakeNode(std::move(distinct), {}, std::move(root));
  }
  if (!sort.keys.empty()) root = MakeNode(std::move(sort), {}, std::move(root));
  NAM_ASSIGN_OR_RETURN(root, AddLimit(select_, limit_, std::move(root)));
  if (hidden > 0) {
    Project shown;
    std::vector<plan::logical::Column> first(root->columns.begin(),
                                             root->columns.end() - static_cast<std::ptrdiff_t>(hidden));
    for (const plan::logical::Column& column : first) shown.outputs.push_back(MakeColumn(column));
    root = MakeNode(std::move(shown), std::move(first), std::move(root));
  }
  tree.root = std::move(root);
  return tree;
}

namespace {

absl::StatusOr<Expr> BindCount(LogicalSelect& expressions, const Node& node, Clause clause) {
  const char* name = ClauseName(clause);
  NAM_ASSIGN_OR_RETURN(Expr expr, expressions.BindUntyped(node, clause));
  NAM_RETURN_IF_ERROR(expressions.builder().ResolveType(expr, Type::Integer()));
  if (expr.type.exact() && expr.type.kind != TypeKind::kInteger) {  // rounded, as on assignment
    NAM_ASSIGN_OR_RETURN(
        expr, expressions.builder().Cast(std::move(expr), Type::Integer(), node.position(), sizeof(int64_t)));
  }
  if (expr.type.kind != TypeKind::kInteger) {
    return UserError(sqlstate::kTypeMismatch, absl::StrCat(name, " needs an integer, not ", ShownType(expr)),
                     node.position(), "write a whole number");
  }
  if (!plan::IsConstant(expr)) {
    return UserError(sqlstate::kBadColumnReference, absl::StrCat(name, " must not contain columns"),
                     node.position(), "write a number");
  }
  expr.position = node.position();
  return expr;
}

/// The value of LIMIT or OFFSET; nullopt for NULL and ALL.
absl::StatusOr<std::optional<int64_t>> Count(const std::optional<Expr>& expr, Clause clause) {
  if (!expr.has_value()) return std::optional<int64_t>();
  const char* name = ClauseName(clause);
  NAM_ASSIGN_OR_RETURN(const Value value, Evaluate(*expr, plan::Resolver()));
  if (value.null) return std::optional<int64_t>();
  if (value.number < 0) {
    return UserError(clause == Clause::kLimit ? sqlstate::kBadLimit : sqlstate::kBadOffset,
                     absl::StrCat(name, " must not be negative"), expr->position, "write 0 or more");
  }
  if (value.number > std::numeric_limits<int64_t>::max()) {
    return UserError(sqlstate::kNumberOutOfRange, absl::StrCat(name, " is out of range"), expr->position,
                     "leave it out");
  }
  return std::optional<int64_t>(static_cast<int64_t>(value.number));
}

}  // namespace

absl::StatusOr<LimitCounts> BindLimit(const Node& select, LogicalSelect& expressions) {
  LimitCounts counts;
  if (select.Has("limitOffset")) {
    NAM_ASSIGN_OR_RETURN(counts.offset, BindCount(expressions, select.Field("limitOffset"), Clause::kOffset));
  }
  if (select.Has("limitCount")) {
    NAM_ASSIGN_OR_RETURN(counts.rows, BindCount(expressions, select.Field("limitCount"), Clause::kLimit));
  }
  return counts;
}

absl::StatusOr<NodePtr> AddLimit(const Node& select, const LimitCounts& counts, NodePtr root) {
  Limit limit;
  NAM_ASSIGN_OR_RETURN(const std::optional<int64_t> offset, Count(counts.offset, Clause::kOffset));
  limit.offset = offset.value_or(0);
  NAM_ASSIGN_OR_RETURN(limit.rows, Count(counts.rows, Clause::kLimit));
  if (select.Text("limitOption") == "LIMIT_OPTION_WITH_TIES") {
    if (!limit.rows.has_value()) {
      return UserError(sqlstate::kBadLimit, "row count cannot be null in FETCH FIRST ... WITH TIES clause",
                       select.Field("limitCount").position(), "write a number");
    }
    if (const auto* sort = root->As<Sort>(); sort != nullptr) {
      for (const OrderKey& key : sort->keys) limit.ties.push_back(key.expr);
    }
  }
  if (limit.rows == 0) return MakeNode(plan::logical::Values(), root->columns);  // computes no row
  if (!limit.rows.has_value() && limit.offset == 0) return root;
  return MakeNode(std::move(limit), {}, std::move(root));
}

}  // namespace nam::sql
