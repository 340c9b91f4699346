#include "sql/column_values.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/assigned_value.h"
#include "plan/expression_tree.h"
#include "sql/constraints.h"
#include "sql/declared_type.h"
#include "sql/expression_binder.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;

/// Refuses nodes that a default cannot contain.
class DefaultScope final : public QueryScope {
 public:
  std::optional<absl::StatusOr<Expr>> BindInQuery(const Node& node, Clause, int) override {
    if (CallsRandomUuid(node)) return RandomUuid(node.position());
    if (node.Is("ColumnRef"))
      return Refusal("cannot use column reference in DEFAULT expression", node.position(),
                     "write a constant");
    if (node.Is("SubLink"))
      return Refusal("cannot use subquery in DEFAULT expression", node.position(), "write a constant");
    return std::nullopt;
  }
};

absl::StatusOr<Expr> StoredDefault(const proto::Column& column, const StatementTime& time) {
  if (column.default_expression().empty()) return plan::MakeLiteral(Value::Null(TypeOfColumn(column)), -1);
  NAM_ASSIGN_OR_RETURN(const ParsedStatement parsed,
                       ParsedStatement::Parse(absl::StrCat("SELECT ", column.default_expression()), time));
  const std::vector<Node> targets = parsed.root().List("targetList");
  if (targets.size() != 1)
    return absl::DataLossError(absl::StrCat("the default of column ", column.name(), " is no expression"));
  NAM_ASSIGN_OR_RETURN(Expr value, BindDefault(targets[0].Field("val"), column, nullptr));
  plan::ForgetPositions(value);
  return value;
}

}  // namespace

bool CallsRandomUuid(const Node& node) {
  const std::vector<std::string> name =
      node.Is("FuncCall") ? node.Names("funcname") : std::vector<std::string>();
  return name == std::vector<std::string>{"gen_random_uuid"} && node.List("args").empty() &&
         !node.Has("over");
}

Type TypeOfColumn(const proto::Column& column) {
  Type type = ColumnTypeOf(column.type());
  type.length = 0;
  return type;
}

absl::StatusOr<int> TargetColumn(const proto::Table& table, const Node& target) {
  const std::string name = target.Text("name");
  std::vector<std::string> names;
  for (int i = 0; i < table.columns_size(); ++i) {
    if (table.columns(i).hidden()) continue;
    if (table.columns(i).name() == name) return i;
    names.push_back(table.columns(i).name());
  }
  return UserError(sqlstate::kUndefinedColumn,
                   absl::StrCat("column ", Quote(name), " of ", Quote(table.name()), " does not exist"),
                   target.position(), DidYouMean(name, names));
}

absl::StatusOr<Expr> AsColumn(const ExpressionBuilder& builder, Expr value, const proto::Column& to,
                              int position) {
  const Type type = TypeOfColumn(to);
  if (value.position >= 0) position = value.position;
  NAM_RETURN_IF_ERROR(builder.ResolveType(value, type));
  const auto number = [](const Type& t) { return t.exact() || t.real(); };
  const bool converts = value.type.kind == type.kind || (number(value.type) && number(type)) ||
                        ConvertsTimes(value.type.kind, type.kind) || type.kind == TypeKind::kString;
  if (!converts) {
    return UserError(
        sqlstate::kTypeMismatch,
        absl::StrCat("column ", Quote(to.name()), " is of type ", partitioner::ColumnTypeName(to.type()),
                     ", the expression of type ", ShownType(value)),
        position, "convert it with CAST");
  }
  if (value.type.kind != type.kind || value.type.scale != type.scale ||
      value.type.blank_padded != type.blank_padded) {
    NAM_ASSIGN_OR_RETURN(value, builder.Cast(std::move(value), type, position));
  }
  value.position = position;
  return value;
}

absl::StatusOr<Expr> BindDefault(const Node& expression, const proto::Column& column,
                                 ExpressionBuilder::FixedTimes* times) {
  DefaultScope scope;
  ExpressionBinder expressions(scope);
  expressions.builder().UseFixedTimes(times);
  NAM_ASSIGN_OR_RETURN(Expr value, expressions.BindUntyped(expression, Clause::kDefault));
  return AsColumn(expressions.builder(), std::move(value), column, expression.position());
}

absl::StatusOr<std::vector<ChangeValue>> BindDefaults(const proto::Table& table, const std::set<int>& wanted,
                                                      const StatementTime& time) {
  std::vector<ChangeValue> defaults(static_cast<size_t>(table.columns_size()));
  for (int i = 0; i < table.columns_size(); ++i) {
    const proto::Column& column = table.columns(i);
    if (!wanted.contains(i) || column.numbering() != proto::NOT_NUMBERED) continue;
    NAM_ASSIGN_OR_RETURN(defaults[static_cast<size_t>(i)], StoredDefault(column, time));
  }
  return defaults;
}

absl::StatusOr<Value> ConstantDefault(const proto::Column& column) {
  if (column.default_expression().empty()) return Value::Null(TypeOfColumn(column));
  NAM_ASSIGN_OR_RETURN(const Expr value, StoredDefault(column, {}));
  return plan::Evaluate(value, ValueResolver());
}

}  // namespace nam::sql
