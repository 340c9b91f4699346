#include "sql/logical_query.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/logical_binder.h"
#include "sql/logical_select.h"
#include "sql/logical_set.h"
#include "sql/logical_with.h"
#include "sql/row_lock_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// Levels of queries, FROM items and expressions, one inside the other, that recursion over them can take.
constexpr int kDeepestNesting = 600;
constexpr int kQueryWeight = 4;

/// Only rows of the outermost query's tables can be locked.
absl::Status CheckLocking(const LogicalContext& context, const Node& select) {
  const std::vector<Node> clauses = select.List("lockingClause");
  if (clauses.empty()) return absl::OkStatus();
  const LockingWords clause = WordsOf(clauses[0]);
  if (!context.locks_rows || context.depth > kQueryWeight) {
    return Refusal(absl::StrCat(clause.words, " inside a statement is not supported"), clause.position,
                   "only a SELECT that is a statement of its own locks rows");
  }
  if (select.Text("op") != "SETOP_NONE") {
    return Refusal(absl::StrCat(clause.words, " is not allowed with UNION/INTERSECT/EXCEPT"), clause.position,
                   "lock the rows of each query by itself");
  }
  if (select.Has("valuesLists"))
    return Refusal(absl::StrCat(clause.words, " cannot be applied to VALUES"), clause.position);
  return absl::OkStatus();
}

absl::Status CheckClauses(const LogicalContext& context, const Node& select) {
  if (select.Has("intoClause")) return Refusal("SELECT INTO is not supported", select.text().Find({"into"}));
  return CheckLocking(context, select);
}

}  // namespace

absl::Status NestingLevel::Check(const Node& node) const {
  if (context_.depth <= kDeepestNesting) return absl::OkStatus();
  return UserError(sqlstate::kTooComplex, "the statement is nested too deeply", node.position(),
                   "use fewer levels of subqueries, joins and parentheses");
}

CommonTable* CommonTables::Find(const std::string& name) {
  for (CommonTables* level = this; level != nullptr; level = level->outer) {
    for (const auto& table : level->tables) {
      if (table->name == name) return table.get();
    }
  }
  return nullptr;
}

absl::StatusOr<BoundTree> BindQuery(LogicalContext& context, const Surroundings& around, const Node& select) {
  const NestingLevel level(context, kQueryWeight);
  NAM_RETURN_IF_ERROR(level.Check(select));
  NAM_RETURN_IF_ERROR(CheckClauses(context, select));
  WithBinder with(context, around);
  if (select.Has("withClause")) NAM_RETURN_IF_ERROR(with.Bind(select.Field("withClause")));
  const Surroundings inside{around.level, &with.tables()};
  absl::StatusOr<BoundTree> tree = select.Text("op") != "SETOP_NONE"
                                       ? BindSetOperation(context, inside, select)
                                   : select.Has("valuesLists") ? BindValues(context, inside, select)
                                                               : LogicalSelect(context, inside).Bind(select);
  NAM_RETURN_IF_ERROR(tree.status());
  tree->root = with.Around(std::move(tree->root));
  return tree;
}

Type CommonType(const Type& a, const Type& b) {
  if (a == b) return a;
  if (a.kind == TypeKind::kString)
    return plan::IsChar(a) && plan::IsChar(b) ? plan::CharType(0) : Type::String();
  Type common = a;
  common.precision = 0;
  return common;
}

absl::StatusOr<plan::logical::Query> BindLogical(const std::string& text, TableSource& tables) {
  NAM_ASSIGN_OR_RETURN(const ParsedStatement statement, ParsedStatement::Parse(text));
  const Node select = statement.root();
  if (!select.Is("SelectStmt")) return RefuseStatement(select);
  return BindLogical(select, tables);
}

absl::StatusOr<plan::logical::Query> BindLogical(const Node& select, TableSource& tables,
                                                 std::vector<RowLock>* locks) {
  LogicalContext context(tables);
  context.locks_rows = locks != nullptr;
  NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context, {}, select));
  // Open types of the select list become text.
  ExpressionBuilder builder;
  builder.UseParameters(select.text().parameters());
  for (std::optional<plan::Expr>& literal : tree.literals) {
    if (literal.has_value()) NAM_RETURN_IF_ERROR(builder.ResolveType(*literal, Type::String()));
  }
  NAM_RETURN_IF_ERROR(context.folding);
  if (locks != nullptr) *locks = std::move(tree.locks);
  plan::logical::Query query;
  query.root = std::move(tree.root);
  query.relations = static_cast<int>(context.owners.size());
  query.ctes = context.ctes;
  return query;
}

}  // namespace nam::sql
