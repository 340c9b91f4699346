#include "sql/prepare_binder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/expression_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;

/// Refuses what an argument cannot be made of.
class ArgumentScope final : public QueryScope {
 public:
  std::optional<absl::StatusOr<Expr>> BindInQuery(const Node& node, Clause, int) override {
    if (node.Is("SubLink"))
      return Refusal("cannot use subquery in EXECUTE parameter", node.position(), "write its value");
    if (node.Is("ColumnRef")) {
      return UserError(sqlstate::kUndefinedColumn, "an argument of EXECUTE cannot name a column",
                       node.position(), "write a value");
    }
    return std::nullopt;
  }
};

/// Whether PostgreSQL would convert on assignment.
bool Converts(const Type& from, const Type& to) {
  const auto dated = [](TypeKind kind) { return kind == TypeKind::kDate || kind == TypeKind::kTimestamp; };
  const auto number = [](const Type& type) { return type.numeric() || type.real(); };
  return from.kind == to.kind || (number(from) && number(to)) || (dated(from.kind) && dated(to.kind)) ||
         to.kind == TypeKind::kString;
}

absl::StatusOr<Value> Argument(Expr argument, const Type& type, size_t number) {
  ExpressionBuilder builder;
  const int position = argument.position;
  NAM_RETURN_IF_ERROR(builder.Settle(argument, type));
  if (!Converts(argument.type, type)) {
    return UserError(sqlstate::kTypeMismatch,
                     absl::StrCat("parameter $", number, " of type ", TypeName(argument.type),
                                  " cannot be coerced to the expected type ", TypeName(type)),
                     position, "You will need to rewrite or cast the expression.");
  }
  // A decimal keeps all of its digits.
  const bool as_it_is =
      argument.type.kind == type.kind || (argument.type.numeric() && type.kind == TypeKind::kDecimal);
  if (!as_it_is) {
    NAM_ASSIGN_OR_RETURN(argument, builder.Cast(std::move(argument), type, position));
  }
  return plan::Evaluate(argument, plan::Resolver());
}

}  // namespace

absl::StatusOr<Statement> BindPrepare(const Node& node, TableSource& tables, Parameters& parameters) {
  NAM_RETURN_IF_ERROR(node.Only({"name", "argtypes", "query"}));
  PrepareStatement statement;
  statement.name = node.Text("name");
  int64_t number = 0;
  for (const Node& type_name : node.List("argtypes")) {
    NAM_ASSIGN_OR_RETURN(const CastTarget target,
                         TypeOfName(type_name, plan::MakeLiteral(Value::Null(Type::Decimal(0)), -1)));
    parameters.Get(++number).type = target.type;
  }
  NAM_RETURN_IF_ERROR(BindStatement(node.Field("query"), tables).status());
  for (const Parameters::Parameter& parameter : parameters.list()) {
    const bool known = parameter.type.kind != TypeKind::kNull;
    if (!known && !parameter.occurs) {
      return UserError(
          sqlstate::kUnknownType,
          absl::StrCat("could not determine data type of parameter $", statement.types.size() + 1), -1,
          "name its type: PREPARE name (types) AS …");
    }
    statement.types.push_back(known ? parameter.type : Type::String());
  }
  const std::string& text = node.text().text();
  const int as = node.text().Find({"as"});
  statement.text = text.substr(static_cast<size_t>(as) + std::string_view("as").size());
  absl::StripAsciiWhitespace(&statement.text);
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindExecute(const Node& node) {
  NAM_RETURN_IF_ERROR(node.Only({"name", "params"}));
  ExecuteStatement statement;
  statement.name = node.Text("name");
  statement.position = node.text().Find({}, node.text().Start() + 1);
  ArgumentScope scope;
  ExpressionBinder expressions(scope);
  for (const Node& argument : node.List("params")) {
    NAM_ASSIGN_OR_RETURN(Expr value, expressions.BindUntyped(argument, Clause::kValues));
    statement.arguments.push_back(std::move(value));
  }
  return Statement(std::move(statement));
}

absl::StatusOr<Parameters> ArgumentsOf(const PrepareStatement& prepared, const ExecuteStatement& execute) {
  if (prepared.types.size() != execute.arguments.size()) {
    return UserError(sqlstate::kSyntaxError,
                     absl::StrCat("wrong number of parameters for prepared statement ", Quote(prepared.name)),
                     execute.position,
                     absl::StrCat("Expected ", prepared.types.size(), " parameters but got ",
                                  execute.arguments.size(), "."));
  }
  Parameters parameters;
  for (size_t i = 0; i < prepared.types.size(); ++i) {
    Parameters::Parameter& parameter = parameters.Get(static_cast<int64_t>(i) + 1);
    parameter.type = prepared.types[i];
    NAM_ASSIGN_OR_RETURN(parameter.value, Argument(execute.arguments[i], parameter.type, i + 1));
    if (parameter.value->null) parameter.value->type = parameter.type;
  }
  return parameters;
}

}  // namespace nam::sql
