#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/logical_select.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::JoinKind;
using plan::Op;
using plan::logical::Column;
using plan::logical::ColumnSet;
using plan::logical::FreeColumns;
using plan::logical::Join;
using plan::logical::MakeColumn;
using plan::logical::MakeNode;
using plan::logical::Names;
using plan::logical::NodePtr;

absl::Status WrongNumberOfColumns(size_t columns, size_t wanted, int position) {
  return UserError(
      sqlstate::kSyntaxError,
      columns > wanted ? "the subquery has too many columns" : "the subquery has too few columns", position,
      absl::StrCat("it must have ", wanted));
}

}  // namespace

absl::StatusOr<Expr> LogicalSelect::SubqueryExpr(const Node& node, Clause clause) {
  const int position = node.position();
  NAM_RETURN_IF_ERROR(node.Only({"subLinkType", "testexpr", "operName", "subselect", "subLinkId"}));
  if (clause == Clause::kLimit || clause == Clause::kOffset) {
    return Refusal(absl::StrCat("a subquery in ", ClauseName(clause), " is not supported"), position,
                   "write a number");
  }
  const std::string type = node.Text("subLinkType");
  if (type == "ARRAY_SUBLINK") return Refusal("arrays are not supported", position, "use a join");
  ScopeLevel level;
  level.scope = scope_;
  level.select = this;
  level.outer = around_.level;
  NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context_, {&level, around_.ctes}, node.Field("subselect")));
  Subquery subquery;
  if (type == "EXISTS_SUBLINK") {
    subquery.kind = JoinKind::kMark;
    subquery.results = {{context_.AddRelation(nullptr), 0}};
    subquery.plan = std::move(tree.root);
    return AddSubquery(std::move(subquery), Type::Bool(), position);
  }
  if (type == "ANY_SUBLINK" || type == "ALL_SUBLINK") return Quantified(node, std::move(tree.root), clause);
  if (type != "EXPR_SUBLINK") {
    return Refusal("comparing rows with a subquery is not supported", position, "compare column by column");
  }
  if (tree.root->columns.size() != 1) {
    return UserError(sqlstate::kSyntaxError, "a subquery in an expression must have one column", position,
                     absl::StrCat("it has ", tree.root->columns.size()));
  }
  subquery.results = {tree.root->columns[0].ref};
  const Column result = tree.root->columns[0];
  subquery.plan = std::move(tree.root);
  Expr value = AddSubquery(std::move(subquery), result.type, position);
  value.declared = result.declared;
  return value;
}

absl::StatusOr<std::vector<Expr>> LogicalSelect::BindRowOf(const Node& sublink, size_t width, int depth) {
  const NestingLevel level(context_, depth);
  NAM_RETURN_IF_ERROR(level.Check(sublink));
  return BindRowSubquery(sublink, width);
}

absl::StatusOr<std::vector<Expr>> LogicalSelect::BindRowSubquery(const Node& node, size_t width) {
  const int position = node.position();
  ScopeLevel level;
  level.scope = scope_;
  level.select = this;
  level.outer = around_.level;
  NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context_, {&level, around_.ctes}, node.Field("subselect")));
  if (tree.root->columns.size() != width) {
    return UserError(sqlstate::kSyntaxError, "number of columns does not match number of values", position,
                     absl::StrCat("the subquery has ", tree.root->columns.size(), " columns, not ", width));
  }
  Subquery subquery;
  std::vector<Expr> values;
  for (size_t i = 0; i < width; ++i) {
    const Column& column = tree.root->columns[i];
    subquery.results.insert(column.ref);
    values.push_back(MakeColumn({column.ref, "", column.type, true, column.declared}, position));
  }
  subquery.plan = std::move(tree.root);
  subqueries_.push_back(std::move(subquery));
  return values;
}

/// IN, ANY and ALL: the mark of a join. `a op ALL` is NOT (a opposite-op ANY).
absl::StatusOr<Expr> LogicalSelect::Quantified(const Node& node, NodePtr plan, Clause clause) {
  const int position = node.position();
  std::vector<std::string> name = node.Names("operName");
  if (name.empty()) name = {"="};  // IN
  NAM_ASSIGN_OR_RETURN(const QuantifiedComparison comparison, QuantifiedComparisonOf(name, position));
  const bool all = node.Text("subLinkType") == "ALL_SUBLINK";
  const Op op = all ? comparison.opposite : comparison.op;
  const Node test = node.Field("testexpr");
  std::vector<Node> sides = {test};
  if (test.Is("RowExpr")) sides = test.List("args");
  if (plan->columns.size() != sides.size())
    return WrongNumberOfColumns(plan->columns.size(), sides.size(), position);
  if (sides.size() > 1 && op != Op::kEqual) {
    return Refusal("ANY and ALL of rows with this operator are not supported", position,
                   "use IN or NOT IN, or compare column by column");
  }
  Subquery subquery;
  subquery.kind = JoinKind::kMark;
  for (size_t i = 0; i < sides.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(Expr side, BindUntyped(sides[i], clause));
    NAM_ASSIGN_OR_RETURN(Expr compared, builder().Compare(op, std::move(side),
                                                          MakeColumn(plan->columns[i], position), position));
    subquery.compared.push_back(std::move(compared));
  }
  subquery.results = {{context_.AddRelation(nullptr), 0}};
  subquery.plan = std::move(plan);
  Expr mark = AddSubquery(std::move(subquery), Type::Bool(), position);
  if (!all) return mark;
  return builder().Not(std::move(mark), position);
}

Expr LogicalSelect::AddSubquery(Subquery subquery, const Type& type, int position) {
  const Column column{*subquery.results.begin(), "", type, true};
  subqueries_.push_back(std::move(subquery));
  return MakeColumn(column, position);
}

NodePtr LogicalSelect::Attach(NodePtr input, const std::vector<const Expr*>& users) {
  for (size_t i = 0; i < subqueries_.size(); ++i) {
    Subquery& subquery = subqueries_[i];
    if (subquery.plan == nullptr) continue;
    const auto uses = [&](const Expr* user) { return Names(*user, subquery.results); };
    if (std::none_of(users.begin(), users.end(), uses)) continue;
    Join join;
    join.kind = subquery.kind;
    if (join.kind == JoinKind::kMark) join.mark = *subquery.results.begin();
    join.compared = std::move(subquery.compared);
    NodePtr plan = std::move(subquery.plan);
    // The compared expressions may contain subqueries themselves.
    std::vector<const Expr*> inner;
    for (const Expr& compared : join.compared) inner.push_back(&compared);
    input = Attach(std::move(input), inner);
    const ColumnSet free = FreeColumns(*plan), left = ColumnsIn(*input);
    join.dependent =
        std::any_of(free.begin(), free.end(), [&](plan::ColumnRef ref) { return left.count(ref) > 0; });
    input = MakeNode(std::move(join), {}, std::move(input), std::move(plan));
  }
  return input;
}

bool LogicalSelect::UsesSubquery(const Expr& expr) const {
  return std::any_of(subqueries_.begin(), subqueries_.end(), [&](const Subquery& subquery) {
    return subquery.plan != nullptr && Names(expr, subquery.results);
  });
}

ColumnSet LogicalSelect::NeedsOfSubqueries(const Expr& expr) const {
  ColumnSet needs;
  for (const Subquery& subquery : subqueries_) {
    if (subquery.plan == nullptr || !Names(expr, subquery.results)) continue;
    needs.merge(FreeColumns(*subquery.plan));
    const ColumnSet own = ColumnsIn(*subquery.plan);
    for (const Expr& compared : subquery.compared) {
      for (const plan::ColumnRef ref : ColumnsOf(compared)) {
        if (own.count(ref) == 0) needs.insert(ref);
      }
      needs.merge(NeedsOfSubqueries(compared));
    }
  }
  return needs;
}

}  // namespace nam::sql
