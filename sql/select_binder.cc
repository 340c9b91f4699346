#include "sql/select_binder.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/aggregate.h"
#include "plan/expression_tree.h"
#include "sql/expression_binder.h"
#include "sql/from_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::Op;
using plan::OrderKey;
using plan::Resolver;

constexpr size_t kMostOutputs = 1664;  // PostgreSQL's own bound

bool HoldsAggregate(const Expr& expr) {
  return expr.op == Op::kAggregate || std::any_of(expr.children.begin(), expr.children.end(), HoldsAggregate);
}

/// Intervals are equal whose parts are not: 1 month is 30 days. Groups and sorts look at values.
absl::Status RefuseInterval(const Expr& key, const char* clause) {
  if (key.type.kind != TypeKind::kInterval) return absl::OkStatus();
  return Refusal(absl::StrCat(clause, " over intervals is not supported"), key.position,
                 "EXTRACT(EPOCH FROM x) is a number");
}

class SelectBinder {
 public:
  SelectBinder(const Node& select, TableSource& source)
      : select_(select), expressions_(query_.tables), from_(query_, source, expressions_) {}

  absl::StatusOr<BoundQuery> Bind() {
    NAM_RETURN_IF_ERROR(RefuseSelectClauses(select_));
    NAM_ASSIGN_OR_RETURN(scope_, from_.Bind(select_.List("fromClause")));
    NAM_RETURN_IF_ERROR(BindWhere());
    NAM_RETURN_IF_ERROR(BindSelectList());
    NAM_RETURN_IF_ERROR(BindGroupBy());
    NAM_RETURN_IF_ERROR(BindHaving());
    NAM_RETURN_IF_ERROR(BindOrderBy());
    NAM_RETURN_IF_ERROR(BindLimits());
    NAM_RETURN_IF_ERROR(FinishAggregation());
    NAM_RETURN_IF_ERROR(CheckDistinct());
    NAM_RETURN_IF_ERROR(from_.CheckConnected());
    return std::move(query_);
  }

 private:
  absl::Status BindWhere() {
    if (!select_.Has("whereClause")) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(Expr where,
                         expressions_.BindBoolean(select_.Field("whereClause"), scope_, Clause::kWhere));
    from_.AddCondition(std::move(where));
    return absl::OkStatus();
  }

  absl::Status AddStar(const Node& column, const std::vector<std::string>& table) {
    const int position = column.position();
    std::vector<Scope::Column> columns = scope_.columns;
    if (!table.empty()) {
      const bool in_public = table.size() == 2 && table[0] == "public";
      if (table.size() > 1 && !in_public) {
        return Refusal("column names with a schema are not supported", position, "write table.*");
      }
      NAM_ASSIGN_OR_RETURN(columns, expressions_.names().Star(scope_, table.back(), position));
    }
    for (const Scope::Column& c : columns) {
      query_.select.push_back({c.name, expressions_.names().ColumnExpr(c.ref, position)});
    }
    return absl::OkStatus();
  }

  absl::Status BindSelectList() {
    for (const Node& target : select_.List("targetList")) {
      NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
      const Node value = target.Field("val");
      std::vector<Node> fields = value.Is("ColumnRef") ? value.List("fields") : std::vector<Node>();
      if (!fields.empty() && fields.back().Is("A_Star")) {
        std::vector<std::string> table = value.Names("fields");
        table.pop_back();
        NAM_RETURN_IF_ERROR(AddStar(value, table));
      } else {
        NAM_ASSIGN_OR_RETURN(Expr expr, expressions_.Bind(value, scope_, Clause::kSelect));
        query_.select.push_back(
            {target.Has("name") ? target.Text("name") : OutputName(value), std::move(expr)});
      }
      if (query_.select.size() > kMostOutputs) {
        return UserError(sqlstate::kTooComplex, "too many columns in the select list", value.position(),
                         absl::StrCat("at most ", kMostOutputs));
      }
    }
    return absl::OkStatus();
  }

  /// The output that an integer constant means.
  absl::StatusOr<const Expr*> ByPosition(const Node& constant, const char* clause) {
    if (!constant.Has("ival")) {
      return UserError(sqlstate::kSyntaxError, absl::StrCat("a constant in ", clause, " must be a position"),
                       constant.position(), "name a column, or count the select list's columns from 1");
    }
    const int64_t index = constant.text().IntegerAt(constant.position());
    if (index < 1 || index > static_cast<int64_t>(query_.select.size())) {
      return UserError(sqlstate::kBadColumnReference,
                       absl::StrCat(clause, " position ", index, " is not in the select list"),
                       constant.position(), absl::StrCat("it has ", query_.select.size(), " columns"));
    }
    return &query_.select[static_cast<size_t>(index) - 1].expr;
  }

  /// The output of this name; null if there is none, an error if there are two that differ.
  absl::StatusOr<const Expr*> ByAlias(const std::string& name, int position, const char* clause) {
    const Expr* found = nullptr;
    for (const OutputColumn& output : query_.select) {
      if (output.name != name) continue;
      if (found != nullptr && !SameExpr(*found, output.expr)) {
        return UserError(sqlstate::kAmbiguousColumn, absl::StrCat(clause, " ", Quote(name), " is ambiguous"),
                         position, "two columns of the select list have this name");
      }
      found = &output.expr;
    }
    return found;
  }

  static bool IsBareName(const Node& node) {
    const std::vector<Node> fields = node.Is("ColumnRef") ? node.List("fields") : std::vector<Node>();
    return fields.size() == 1 && fields[0].Is("String");
  }

  /// GROUP BY prefers a table's column to an output's name; ORDER BY the other way round.
  absl::StatusOr<Expr> Item(const Node& node, Clause clause) {
    const char* name = ClauseName(clause);
    if (node.Is("A_Const")) {
      NAM_ASSIGN_OR_RETURN(const Expr* output, ByPosition(node, name));
      return *output;
    }
    if (IsBareName(node)) {
      const std::string column = node.Names("fields")[0];
      if (clause == Clause::kOrderBy || !NameResolver::HasColumn(scope_, column)) {
        NAM_ASSIGN_OR_RETURN(const Expr* output, ByAlias(column, node.position(), name));
        if (output != nullptr) return *output;
      }
    }
    return expressions_.Bind(node, scope_, clause);
  }

  absl::Status BindGroupBy() {
    const std::vector<Node> items = select_.List("groupClause");
    for (const Node& item : items) {
      NAM_ASSIGN_OR_RETURN(Expr key, Item(item, Clause::kGroupBy));
      if (HoldsAggregate(key)) {
        return UserError(sqlstate::kGroupingError, "aggregates are not allowed in GROUP BY", item.position(),
                         "group by columns, and put conditions on aggregates into HAVING");
      }
      if (IsConstant(key)) continue;  // one value, no further groups
      NAM_RETURN_IF_ERROR(RefuseInterval(key, "GROUP BY"));
      const auto same = [&](const Expr& other) { return SameExpr(other, key); };
      if (std::none_of(query_.group_by.begin(), query_.group_by.end(), same))
        query_.group_by.push_back(std::move(key));
    }
    if (!items.empty() && query_.group_by.empty()) {
      return Refusal("GROUP BY a constant alone is not supported", items[0].position(), "group by a column");
    }
    return absl::OkStatus();
  }

  absl::Status BindHaving() {
    if (!select_.Has("havingClause")) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(query_.having,
                         expressions_.BindBoolean(select_.Field("havingClause"), scope_, Clause::kHaving));
    return absl::OkStatus();
  }

  absl::Status BindOrderBy() {
    for (const Node& sort : select_.List("sortClause")) {
      if (sort.Text("sortby_dir") == "SORTBY_USING") {
        return Refusal("ORDER BY … USING is not supported", sort.text().FindBefore("using", sort.position()),
                       "use ASC or DESC");
      }
      NAM_RETURN_IF_ERROR(sort.Only({"node", "sortby_dir", "sortby_nulls"}));
      OrderKey key;
      NAM_ASSIGN_OR_RETURN(key.expr, Item(sort.Field("node"), Clause::kOrderBy));
      if (key.expr.position < 0) key.expr.position = sort.Field("node").position();
      NAM_RETURN_IF_ERROR(RefuseInterval(key.expr, "ORDER BY"));
      key.descending = sort.Text("sortby_dir") == "SORTBY_DESC";
      const std::string nulls = sort.Text("sortby_nulls");
      key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (nulls != "SORTBY_NULLS_LAST" && key.descending);
      if (!IsLiteral(key.expr)) query_.order_by.push_back(std::move(key));
    }
    return absl::OkStatus();
  }

  /// LIMIT's or OFFSET's value; nothing for NULL and ALL.
  absl::StatusOr<std::optional<int64_t>> Count(const Node& node, Clause clause) {
    const char* name = ClauseName(clause);
    NAM_ASSIGN_OR_RETURN(Expr expr, expressions_.BindUntyped(node, scope_, clause));
    NAM_RETURN_IF_ERROR(expressions_.builder().Settle(expr, Type::Integer()));
    if (expr.type.kind == TypeKind::kDecimal) {  // rounded, as on assignment
      NAM_ASSIGN_OR_RETURN(expr, expressions_.builder().Cast(std::move(expr), Type::Integer(),
                                                             node.position(), sizeof(int64_t)));
    }
    if (expr.type.kind != TypeKind::kInteger) {
      return UserError(sqlstate::kTypeMismatch,
                       absl::StrCat(name, " needs an integer, not ", TypeName(expr.type)), node.position(),
                       "write a whole number");
    }
    NAM_ASSIGN_OR_RETURN(const Value value, Evaluate(expr, Resolver()));
    if (value.null) return std::optional<int64_t>();
    if (value.number < 0) {
      return UserError(clause == Clause::kLimit ? sqlstate::kBadLimit : sqlstate::kBadOffset,
                       absl::StrCat(name, " must not be negative"), node.position(), "write 0 or more");
    }
    if (value.number > std::numeric_limits<int64_t>::max()) {
      return UserError(sqlstate::kNumberOutOfRange, absl::StrCat(name, " is out of range"), node.position(),
                       "leave it out");
    }
    return std::optional<int64_t>(static_cast<int64_t>(value.number));
  }

  absl::Status BindLimits() {
    if (select_.Has("limitCount")) {
      NAM_ASSIGN_OR_RETURN(query_.limit, Count(select_.Field("limitCount"), Clause::kLimit));
    }
    if (select_.Has("limitOffset")) {
      NAM_ASSIGN_OR_RETURN(const std::optional<int64_t> offset,
                           Count(select_.Field("limitOffset"), Clause::kOffset));
      query_.offset = offset.value_or(0);
    }
    return absl::OkStatus();
  }

  /// Puts kGroup where a group's expression stands; a column that is left over belongs to no group.
  absl::Status ReplaceGroups(Expr& expr) {
    for (size_t i = 0; i < query_.group_by.size(); ++i) {
      if (!SameExpr(query_.group_by[i], expr)) continue;
      Expr group;
      group.op = Op::kGroup;
      group.type = expr.type;
      group.position = expr.position;
      group.index = static_cast<int>(i);
      expr = std::move(group);
      return absl::OkStatus();
    }
    if (expr.op == Op::kColumn) {
      const std::string name = expressions_.names().ColumnName(expr.column);
      return UserError(
          sqlstate::kGroupingError,
          absl::StrCat("column ", Quote(name), " must appear in GROUP BY or be used in an aggregate"),
          expr.position, absl::StrCat("add ", name, " to GROUP BY, or write min(", name, ")"));
    }
    for (Expr& child : expr.children) NAM_RETURN_IF_ERROR(ReplaceGroups(child));
    return absl::OkStatus();
  }

  absl::Status FinishAggregation() {
    query_.aggregates = std::move(expressions_.aggregates());
    query_.aggregated = !query_.aggregates.empty() || !query_.group_by.empty() || query_.having.has_value();
    if (!query_.aggregated) return absl::OkStatus();
    for (OutputColumn& output : query_.select) NAM_RETURN_IF_ERROR(ReplaceGroups(output.expr));
    if (query_.having.has_value()) NAM_RETURN_IF_ERROR(ReplaceGroups(*query_.having));
    for (OrderKey& key : query_.order_by) NAM_RETURN_IF_ERROR(ReplaceGroups(key.expr));
    if (query_.having.has_value() && IsBoolLiteral(*query_.having, true)) query_.having.reset();
    return absl::OkStatus();
  }

  absl::Status CheckDistinct() {
    query_.distinct = select_.Has("distinctClause");
    if (!query_.distinct) return absl::OkStatus();
    for (const OutputColumn& output : query_.select)
      NAM_RETURN_IF_ERROR(RefuseInterval(output.expr, "SELECT DISTINCT"));
    for (const OrderKey& key : query_.order_by) {
      const auto same = [&](const OutputColumn& output) { return SameExpr(output.expr, key.expr); };
      if (std::any_of(query_.select.begin(), query_.select.end(), same)) continue;
      return UserError(sqlstate::kBadColumnReference,
                       "with SELECT DISTINCT, ORDER BY takes only what is in the select list",
                       key.expr.position, "add it to the select list");
    }
    return absl::OkStatus();
  }

  const Node& select_;
  BoundQuery query_;
  ExpressionBinder expressions_;
  FromBinder from_;
  Scope scope_;
};

}  // namespace

absl::StatusOr<BoundQuery> BindSelect(const Node& select, TableSource& source) {
  return SelectBinder(select, source).Bind();
}

}  // namespace nam::sql
