#include "sql/prepare_binder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/expression_binder.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;

/// Refuses nodes that an argument cannot contain.
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
  const auto number = [](const Type& type) { return type.exact() || type.real(); };
  return from.kind == to.kind || (number(from) && number(to)) || ConvertsTimes(from.kind, to.kind) ||
         to.kind == TypeKind::kString;
}

/// The argument's target type. A decimal has as many decimals as its argument; parameters' strings have no
/// length, as in PostgreSQL.
Type TargetOf(const Expr& argument, const Type& type) {
  if (type.kind == TypeKind::kDecimal) {
    if (argument.type.numeric()) return Type::Decimal(argument.type.scale);
    if (argument.type.real() && IsLiteral(argument) && !argument.literal.null)
      return Type::Decimal(ScaleOfText(argument.literal.ToString()));
  }
  if (type.kind != TypeKind::kString) return type;
  if (plan::IsChar(type)) return plan::IsChar(argument.type) ? argument.type : plan::CharType(0);
  return Type::String(type.length > 0 ? Type::kAnyLength : 0);
}

/// `width`: the written bytes of an integer type, otherwise -1.
absl::StatusOr<Value> Argument(Expr argument, const Type& type, int width, size_t number,
                               const std::string& zone) {
  ExpressionBuilder builder;
  builder.UseZone(zone);
  const int position = argument.position;
  NAM_RETURN_IF_ERROR(builder.ResolveType(argument, type));
  if (type.kind != TypeKind::kNumeric) ExpressionBuilder::AsKnownScale(argument);
  if (!Converts(argument.type, type)) {
    return UserError(sqlstate::kTypeMismatch,
                     absl::StrCat("parameter $", number, " of type ", ShownType(argument),
                                  " cannot be coerced to the expected type ", TypeName(type)),
                     position, "You will need to rewrite or cast the expression.");
  }
  const Type target = TargetOf(argument, type);
  const bool text = target.kind == TypeKind::kString;
  if (!text || argument.type.kind != TypeKind::kString) {
    NAM_ASSIGN_OR_RETURN(argument,
                         builder.Cast(std::move(argument), text ? Type::String() : target, position, width));
  }
  NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(argument, plan::Resolver()));
  value.type = target;
  if (plan::IsChar(target)) value.text.resize(plan::WithoutBlanks(value.text).size());
  return value;
}

/// Binds an argument; ARRAY[…] becomes the text of its elements.
absl::StatusOr<Expr> ArgumentOf(const Node& node, ExpressionBinder& expressions) {
  const Node array =
      node.Is("TypeCast") && node.Field("typeName").Has("arrayBounds") ? node.Field("arg") : node;
  if (!array.Is("A_ArrayExpr")) return expressions.BindUntyped(array, Clause::kValues);
  std::string text = "{";
  for (const Node& element : array.List("elements")) {
    NAM_ASSIGN_OR_RETURN(const Expr bound, expressions.BindUntyped(element, Clause::kValues));
    NAM_ASSIGN_OR_RETURN(const Value value, plan::Evaluate(bound, plan::Resolver()));
    const std::string shown = ExpressionBuilder::IsUntyped(bound) ? value.text : value.ToString();
    if (text.size() > 1) text += ",";
    text += value.null
                ? "NULL"
                : absl::StrCat("\"", absl::StrReplaceAll(shown, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
  }
  return ExpressionBuilder::UntypedString(text + "}", array.position());
}

}  // namespace

absl::StatusOr<Statement> BindPrepare(const Node& node, TableSource& tables, Parameters& parameters) {
  NAM_RETURN_IF_ERROR(node.Only({"name", "argtypes", "query"}));
  PrepareStatement statement;
  statement.name = node.Text("name");
  int64_t number = 0;
  std::vector<uint8_t> widths;  // of listed integers
  for (const Node& type_name : node.List("argtypes")) {
    const Expr unknown = plan::MakeLiteral(Value::Null(Type::Decimal(0)), -1);
    NAM_ASSIGN_OR_RETURN(CastTarget target, ElementTypeOfName(type_name, unknown));
    // An array is a text, which ANY and ALL parse.
    if (type_name.Has("arrayBounds")) target = {Type::String()};
    parameters.Get(++number).type = target.type;
    widths.push_back(target.type.kind == TypeKind::kInteger ? static_cast<uint8_t>(target.width) : 0);
    if (widths.back() > 0)
      parameters.Get(number).declared = SqlTypeOf({.kind = TypeKind::kInteger, .precision = widths.back()});
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
    Type& type = statement.types.emplace_back(known ? parameter.type : Type::String());
    type.precision = statement.types.size() <= widths.size() ? widths[statement.types.size() - 1] : 0;
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
    NAM_ASSIGN_OR_RETURN(Expr value, ArgumentOf(argument, expressions));
    statement.arguments.push_back(std::move(value));
  }
  return Statement(std::move(statement));
}

absl::StatusOr<Parameters> ArgumentsOf(const PrepareStatement& prepared, const ExecuteStatement& execute,
                                       const std::string& zone) {
  if (prepared.types.empty()) return Parameters();  // PostgreSQL ignores arguments then
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
    parameter.type.precision = 0;  // for columns and prepared statements only
    if (prepared.types[i].precision > 0) parameter.declared = SqlTypeOf(prepared.types[i]);
    const int width = prepared.types[i].precision > 0 ? prepared.types[i].precision : -1;
    NAM_ASSIGN_OR_RETURN(parameter.value, Argument(execute.arguments[i], parameter.type, width, i + 1, zone));
    if (parameter.value->null) parameter.value->type = parameter.type;
  }
  return parameters;
}

}  // namespace nam::sql
