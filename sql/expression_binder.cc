#include "sql/expression_binder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/similar_pattern.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::FitsInteger;
using plan::MakeLiteral;
using plan::Op;

/// The nesting that the binder's own recursion can take.
constexpr int kDeepestExpression = 400;
/// Levels of bound expressions: plans have up to plan::kDeepestExpression, and a level here may become two.
constexpr int kMostLevels = 1700;

absl::Status TooDeep(const Node& node) {
  return UserError(sqlstate::kTooComplex, "the expression is nested too deeply", node.position(),
                   absl::StrCat("at most ", kDeepestExpression,
                                " levels, and 1500 terms of a chain; IN (…) replaces long chains of OR"));
}

absl::Status NotBoolean(const Expr& expr, const char* where) {
  return UserError(sqlstate::kTypeMismatch, absl::StrCat(where, " needs a condition, not ", ShownType(expr)),
                   expr.position, "compare it with something");
}

}  // namespace

const char* ClauseName(Clause clause) {
  switch (clause) {
    case Clause::kSelect:
      return "SELECT";
    case Clause::kWhere:
      return "WHERE";
    case Clause::kOn:
      return "JOIN conditions";
    case Clause::kGroupBy:
      return "GROUP BY";
    case Clause::kHaving:
      return "HAVING";
    case Clause::kOrderBy:
      return "ORDER BY";
    case Clause::kLimit:
      return "LIMIT";
    case Clause::kOffset:
      return "OFFSET";
    case Clause::kValues:
      return "VALUES";
    case Clause::kSet:
      return "UPDATE";
    case Clause::kCheck:
      return "CHECK";
    case Clause::kDefault:
      return "DEFAULT";
    case Clause::kReturning:
      return "RETURNING";
    case Clause::kFunctionInFrom:
      return "functions in FROM";
  }
  return "";
}

// A scope of no query refuses every subquery, with its reason.
absl::StatusOr<std::vector<Expr>> QueryScope::BindRowOf(const Node& sublink, size_t, int depth) {
  const auto refused = BindInQuery(sublink, Clause::kValues, depth);
  return refused.has_value() && !refused->ok() ? refused->status() : RefuseExpression(sublink);
}

absl::StatusOr<Expr> ExpressionBinder::BindUntyped(const Node& node, Clause clause) {
  builder_.UseZone(node.text().time().zone);
  return Expression(node, {.clause = clause});
}

absl::StatusOr<Expr> ExpressionBinder::Bind(const Node& node, Clause clause) {
  NAM_ASSIGN_OR_RETURN(Expr expr, BindUntyped(node, clause));
  if (IsNullLiteral(expr)) {
    NAM_RETURN_IF_ERROR(builder_.ResolveType(expr, Type::String()));
  }
  ExpressionBuilder::ResolveAsString(expr);
  return expr;
}

absl::StatusOr<Expr> ExpressionBinder::BindBoolean(const Node& node, Clause clause) {
  NAM_ASSIGN_OR_RETURN(Expr expr, BindUntyped(node, clause));
  NAM_RETURN_IF_ERROR(builder_.ResolveType(expr, Type::Bool()));
  if (expr.type.kind != TypeKind::kBool) return NotBoolean(expr, ClauseName(clause));
  return expr;
}

absl::StatusOr<Expr> ExpressionBinder::Expression(const Node& node, Context context) {
  if (++context.depth > kDeepestExpression || ++context.levels > kMostLevels) return TooDeep(node);
  if (auto bound = scope_.BindInQuery(node, context.clause, context.depth)) return *std::move(bound);
  if (node.Is("A_Const")) return Constant(node);
  if (node.Is("ParamRef")) return ParameterValue(node);
  if (node.Is("A_Expr")) return Operation(node, context);
  if (node.Is("BoolExpr")) return BooleanExpression(node, context);
  if (node.Is("NullTest")) return NullTest(node, context);
  if (node.Is("CaseExpr")) return Case(node, context);
  if (node.Is("CoalesceExpr")) return Coalesce(node, context);
  if (node.Is("TypeCast")) return CastExpression(node, context);
  if (node.Is("FuncCall")) return Function(node, context);
  if (node.Is("MinMaxExpr")) return MinMax(node, context);
  if (node.Is("BooleanTest")) return BooleanTest(node, context);
  if (node.Is("SQLValueFunction")) return CurrentTime(node);
  return RefuseExpression(node);
}

absl::StatusOr<Expr> ExpressionBinder::Boolean(const Node& node, const Context& context) {
  NAM_ASSIGN_OR_RETURN(Expr expr, Expression(node, context));
  NAM_RETURN_IF_ERROR(builder_.ResolveType(expr, Type::Bool()));
  if (expr.type.kind != TypeKind::kBool) return NotBoolean(expr, "a condition's part");
  return expr;
}

absl::StatusOr<Expr> ExpressionBinder::Constant(const Node& node) {
  const int position = node.position();
  if (node.Flag("isnull")) return ExpressionBuilder::UntypedNull(position);
  if (node.Has("ival")) {
    // The tree omits numbers that are not positive, so the text tells.
    const int64_t value =
        position >= 0 ? node.text().IntegerAt(position) : node.Field("ival").Integer("ival");
    return MakeLiteral(Value::Integer(value), position);
  }
  if (node.Has("fval")) return NumberConstant(node.Field("fval").Text("fval"), position);
  if (node.Has("boolval")) return MakeLiteral(Value::Bool(node.Field("boolval").Flag("boolval")), position);
  builder_.UseTime(node.text().time());
  if (node.Has("sval")) return ExpressionBuilder::UntypedString(node.Field("sval").Text("sval"), position);
  return Refusal("bit string constants are not supported", position, "write a number or a string");
}

/// Without a type it is a NULL that remembers its number.
absl::StatusOr<Expr> ExpressionBinder::ParameterValue(const Node& node) {
  const int position = node.position();
  const int64_t number = node.Integer("number");
  Parameters* const parameters = node.text().parameters();
  if (parameters == nullptr || number < 1 || number > Parameters::kMost) {
    return UserError(sqlstate::kUndefinedParameter, absl::StrCat("there is no parameter $", number), position,
                     "PREPARE takes statements with parameters");
  }
  Parameters::Parameter& parameter = parameters->Get(number);
  parameter.occurs = true;
  if (parameter.value.has_value() || parameter.type.kind != TypeKind::kNull) {
    Expr known = MakeLiteral(parameter.value.value_or(Value::Null(parameter.type)), position);
    known.declared = parameter.declared;
    return known;
  }
  builder_.UseParameters(parameters);
  Expr unknown = ExpressionBuilder::UntypedNull(position);
  unknown.index = static_cast<int>(number);
  return unknown;
}

absl::StatusOr<Expr> ExpressionBinder::NumberConstant(const std::string& text, int position) {
  absl::StatusOr<Value> number = ParseNumeric(text);
  // With an exponent it is floating point, which has room for it.
  const bool floating = text.find_first_of("eE") != std::string::npos;
  if (!number.ok() && !floating) number = ParseRounded(text);
  if (!number.ok()) {
    const absl::StatusOr<double> real = ParseReal(text, /*real=*/false);
    if (floating && real.ok()) return MakeLiteral(Value::Double(*real), position);
    return UserError(sqlstate::kNumberOutOfRange, "the number has more than 38 digits", position,
                     "numbers are exact and have up to 38 digits; with an exponent they are floating point");
  }
  // Written integers have 64 bits.
  if (number->type.kind == TypeKind::kInteger && !FitsInteger(number->number, sizeof(int64_t)))
    number->type = Type::Decimal(0);
  return MakeLiteral(*std::move(number), position);
}

absl::StatusOr<Expr> ExpressionBinder::BooleanExpression(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"boolop", "args"}));
  const std::vector<Node> args = node.List("args");
  if (node.Text("boolop") == "NOT_EXPR") {
    NAM_ASSIGN_OR_RETURN(Expr operand, Boolean(args.at(0), context));
    return builder_.Not(std::move(operand), node.position());
  }
  std::vector<Expr> operands;
  for (const Node& arg : args) {
    if (operands.empty()) {
      NAM_ASSIGN_OR_RETURN(Expr operand, Boolean(arg, context));
      operands.push_back(std::move(operand));
    } else {
      const ExpressionBuilder::Conditional conditional(builder_);
      NAM_ASSIGN_OR_RETURN(Expr operand, Boolean(arg, context));
      operands.push_back(std::move(operand));
    }
  }
  return builder_.Junction(node.Text("boolop") == "AND_EXPR" ? Op::kAnd : Op::kOr, std::move(operands),
                           node.position());
}

absl::StatusOr<Expr> ExpressionBinder::NullTest(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"arg", "nulltesttype", "argisrow"}));
  if (node.Field("arg").Is("RowExpr")) return RowNullTest(node, context);
  NAM_ASSIGN_OR_RETURN(Expr operand, Expression(node.Field("arg"), context));
  NAM_ASSIGN_OR_RETURN(Expr test, builder_.IsNull(std::move(operand), node.position()));
  if (node.Text("nulltesttype") != "IS_NOT_NULL") return test;
  return builder_.Not(std::move(test), node.position());
}

absl::StatusOr<Expr> ExpressionBinder::Operation(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"kind", "name", "lexpr", "rexpr"}));
  const std::string kind = node.Text("kind");
  const std::vector<std::string> name = node.Names("name");
  if (kind == "AEXPR_OP") return SimpleOperation(node, context);
  if (kind == "AEXPR_BETWEEN") return Between(node, false, false, context);
  if (kind == "AEXPR_NOT_BETWEEN") return Between(node, true, false, context);
  if (kind == "AEXPR_IN") return In(node, !name.empty() && name.back() == "<>", context);
  if (kind == "AEXPR_LIKE") return Like(node, !name.empty() && name.back() == "!~~", context);
  if (kind == "AEXPR_SIMILAR") return Similar(node, !name.empty() && name.back() == "!~", context);
  if (kind == "AEXPR_ILIKE") return *CalledOperation(name.empty() ? "~~*" : name.back(), node, context);
  if (kind == "AEXPR_DISTINCT" || kind == "AEXPR_NOT_DISTINCT")
    return DistinctTest(node, kind == "AEXPR_NOT_DISTINCT", context);
  if (kind == "AEXPR_NULLIF") return NullIf(node, context);
  if (kind == "AEXPR_BETWEEN_SYM") return Between(node, false, true, context);
  if (kind == "AEXPR_NOT_BETWEEN_SYM") return Between(node, true, true, context);
  if (kind == "AEXPR_OP_ANY" || kind == "AEXPR_OP_ALL") return Listed(node, context);
  return Refusal(absl::StrCat("this expression (", kind, ") is not supported"), node.position());
}

namespace {

struct OperatorName {
  const char* name;
  Op op;
};
constexpr OperatorName kOperators[] = {
    {"+", Op::kAdd},        {"-", Op::kSubtract}, {"*", Op::kMultiply},      {"/", Op::kDivide},
    {"%", Op::kModulo},     {"=", Op::kEqual},    {"<>", Op::kNotEqual},     {"<", Op::kLess},
    {"<=", Op::kLessEqual}, {">", Op::kGreater},  {">=", Op::kGreaterEqual},
};

const OperatorName* FindOperator(const std::vector<std::string>& name) {
  const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const OperatorName& o) {
    return name.size() == 1 && name[0] == o.name;
  });
  return found == std::end(kOperators) ? nullptr : found;
}

/// Whether it is `a + b`, `a || b` or similar, which form long chains: their trees are deep on the left.
bool IsChained(const Node& node) {
  if (!node.Is("A_Expr") || node.Text("kind") != "AEXPR_OP" || !node.Has("lexpr")) return false;
  const std::vector<std::string> name = node.Names("name");
  if (name.size() == 1 && name[0] == "||") return true;
  const OperatorName* known = FindOperator(name);
  return known != nullptr && known->op <= Op::kModulo;
}

}  // namespace

/// Starts at the innermost operator, so that the recursion is not as deep as the chain is long.
absl::StatusOr<Expr> ExpressionBinder::Chain(const Node& node, const Context& context) {
  std::vector<Node> links = {node};
  while (IsChained(links.back().Field("lexpr"))) {
    links.push_back(links.back().Field("lexpr"));
    NAM_RETURN_IF_ERROR(links.back().Only({"kind", "name", "lexpr", "rexpr"}));
  }
  Context inside = context;
  inside.levels += static_cast<int>(links.size()) - 1;
  if (inside.levels > kMostLevels) return TooDeep(node);
  NAM_ASSIGN_OR_RETURN(Expr result, Expression(links.back().Field("lexpr"), inside));
  for (; !links.empty(); links.pop_back(), --inside.levels) {
    const Node& link = links.back();
    const int position = link.position();
    NAM_ASSIGN_OR_RETURN(Expr right, Expression(link.Field("rexpr"), inside));
    if (const OperatorName* known = FindOperator(link.Names("name"))) {
      NAM_ASSIGN_OR_RETURN(result,
                           builder_.Arithmetic(known->op, std::move(result), std::move(right), position));
    } else {
      NAM_ASSIGN_OR_RETURN(result, builder_.Concatenate(std::move(result), std::move(right), position));
    }
  }
  return result;
}

absl::StatusOr<Expr> ExpressionBinder::SimpleOperation(const Node& node, const Context& context) {
  if (IsChained(node)) return Chain(node, context);
  const std::vector<std::string> name = node.Names("name");
  const int position = node.position();
  const OperatorName* const known = FindOperator(name);
  const Node left = node.Field("lexpr"), right = node.Field("rexpr");
  if (name.size() == 1) {
    if (auto called = CalledOperation(name[0], node, context)) return *std::move(called);
  }
  const bool sign = !left && (name.back() == "+" || name.back() == "-");
  if (known == nullptr || (!left && !sign)) {
    return Refusal(
        absl::StrCat("operator ", name.empty() ? "" : name.back(), " is not supported"), position,
        "operators are + - * / % ^ & | # ~ << >> || = <> < <= > >= ~* !~ !~* and LIKE, IN, BETWEEN");
  }
  if (!left) {
    NAM_ASSIGN_OR_RETURN(Expr operand, Expression(right, context));
    if (known->op == Op::kSubtract && ExpressionBuilder::IsUntyped(operand)) {
      return UserError(sqlstate::kAmbiguousFunction, "operator is not unique: - unknown", position,
                       "write the number without quotes, or CAST it");
    }
    // Of the numbers, double precision is the preferred type.
    NAM_RETURN_IF_ERROR(builder_.ResolveType(operand, Type::Double()));
    NAM_ASSIGN_OR_RETURN(Expr negated, builder_.Negate(operand, position));
    return known->op == Op::kSubtract ? negated : operand;
  }
  if (left.Is("RowExpr") && right.Is("SubLink") && right.Text("subLinkType") == "EXPR_SUBLINK") {
    if (context.clause == Clause::kLimit || context.clause == Clause::kOffset) {
      return Refusal(absl::StrCat("a subquery in ", ClauseName(context.clause), " is not supported"),
                     position, "write a number");
    }
    NAM_ASSIGN_OR_RETURN(std::vector<Expr> a, Row(left, context));
    NAM_ASSIGN_OR_RETURN(std::vector<Expr> b, scope_.BindRowOf(right, a.size(), context.depth));
    return CompareRows(known->op, std::move(a), std::move(b), position);
  }
  if (left.Is("RowExpr") && right.Is("RowExpr")) {
    NAM_ASSIGN_OR_RETURN(std::vector<Expr> a, Row(left, context));
    NAM_ASSIGN_OR_RETURN(std::vector<Expr> b, Row(right, context));
    return CompareRows(known->op, std::move(a), std::move(b), position);
  }
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(left, context));
  NAM_ASSIGN_OR_RETURN(Expr b, Expression(right, context));
  return builder_.Compare(known->op, std::move(a), std::move(b), position);
}

/// a >= low AND a <= high.
absl::StatusOr<Expr> ExpressionBinder::Within(Expr a, Expr low, Expr high, int position) {
  NAM_ASSIGN_OR_RETURN(Expr again, builder_.Duplicate(a));
  std::vector<Expr> both(2);
  NAM_ASSIGN_OR_RETURN(both[0], builder_.Compare(Op::kGreaterEqual, std::move(a), std::move(low), position));
  NAM_ASSIGN_OR_RETURN(both[1],
                       builder_.Compare(Op::kLessEqual, std::move(again), std::move(high), position));
  return builder_.Junction(Op::kAnd, std::move(both), position);
}

/// BETWEEN SYMMETRIC takes its bounds in either order.
absl::StatusOr<Expr> ExpressionBinder::Between(const Node& node, bool negated, bool symmetric,
                                               const Context& context) {
  const int position = node.position();
  const std::vector<Node> bounds = node.Field("rexpr").List("items");
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
  NAM_ASSIGN_OR_RETURN(Expr low, Expression(bounds.at(0), context));
  NAM_ASSIGN_OR_RETURN(Expr high, Expression(bounds.at(1), context));
  // The lower bound gives a parameter its type; another literal is parsed once beside each bound.
  if (a.index > 0) {
    const bool text = ExpressionBuilder::IsUntyped(low);
    NAM_RETURN_IF_ERROR(builder_.ResolveType(a, text ? Type::String() : low.type));
  }
  std::vector<Expr> either;
  if (symmetric) {
    NAM_ASSIGN_OR_RETURN(Expr again, builder_.Duplicate(a));
    NAM_ASSIGN_OR_RETURN(Expr first, builder_.Duplicate(high));
    NAM_ASSIGN_OR_RETURN(Expr second, builder_.Duplicate(low));
    NAM_ASSIGN_OR_RETURN(Expr swapped,
                         Within(std::move(again), std::move(first), std::move(second), position));
    either.push_back(std::move(swapped));
  }
  NAM_ASSIGN_OR_RETURN(Expr between, Within(std::move(a), std::move(low), std::move(high), position));
  if (symmetric) {
    either.push_back(std::move(between));
    NAM_ASSIGN_OR_RETURN(between, builder_.Junction(Op::kOr, std::move(either), position));
  }
  return negated ? builder_.Not(std::move(between), position) : std::move(between);
}

absl::StatusOr<Expr> ExpressionBinder::In(const Node& node, bool negated, const Context& context) {
  if (node.Field("lexpr").Is("RowExpr")) {
    NAM_ASSIGN_OR_RETURN(Expr in, RowIn(node, context));
    return negated ? builder_.Not(std::move(in), node.position()) : std::move(in);
  }
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
  std::vector<Expr> items;
  for (const Node& item : node.Field("rexpr").List("items")) {
    NAM_ASSIGN_OR_RETURN(Expr expr, Expression(item, context));
    items.push_back(std::move(expr));
  }
  NAM_ASSIGN_OR_RETURN(Expr in, builder_.In(std::move(a), std::move(items), node.position()));
  return negated ? builder_.Not(std::move(in), node.position()) : std::move(in);
}

absl::StatusOr<Expr> ExpressionBinder::Like(const Node& node, bool negated, const Context& context) {
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
  NAM_ASSIGN_OR_RETURN(Expr b, Expression(node.Field("rexpr"), context));
  NAM_ASSIGN_OR_RETURN(Expr like, builder_.Like(std::move(a), std::move(b), node.position()));
  return negated ? builder_.Not(std::move(like), node.position()) : std::move(like);
}

/// The parser writes x ~ similar_to_escape(pattern [, escape]).
absl::StatusOr<Expr> ExpressionBinder::Similar(const Node& node, bool negated, const Context& context) {
  const int position = node.position();
  std::vector<Expr> operands(1);
  NAM_ASSIGN_OR_RETURN(operands[0], Expression(node.Field("lexpr"), context));
  std::vector<std::string> texts;
  bool null = false;
  for (const Node& arg : node.Field("rexpr").List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr text, Expression(arg, context));
    NAM_RETURN_IF_ERROR(builder_.ResolveType(text, Type::String()));
    if (!IsLiteral(text) || text.type.kind != TypeKind::kString)
      return Refusal("SIMILAR TO takes a constant here", position, "use ~ with a regular expression");
    null = null || text.literal.null;
    texts.push_back(text.literal.text);
  }
  if (null) {
    operands.push_back(MakeLiteral(Value::Null(Type::String()), position));
  } else {
    const std::string escape = texts.size() > 1 ? texts[1] : "\\";
    const bool one =
        std::count_if(escape.begin(), escape.end(), [](char c) { return (c & 0xc0) != 0x80; }) <= 1;
    if (!one) return UserError(sqlstate::kBadEscape, "the escape is one character or none", position);
    NAM_ASSIGN_OR_RETURN(std::string pattern, SimilarPattern(texts.at(0), escape, position));
    operands.push_back(ExpressionBuilder::UntypedString(std::move(pattern), position));
  }
  NAM_ASSIGN_OR_RETURN(Expr call, builder_.Call("textregexeq", std::move(operands), position));
  return negated ? builder_.Not(std::move(call), position) : std::move(call);
}

absl::StatusOr<Expr> ExpressionBinder::DistinctTest(const Node& node, bool negated, const Context& context) {
  const int position = node.position();
  const auto test = [&]() -> absl::StatusOr<Expr> {
    if (node.Field("lexpr").Is("RowExpr")) return RowDistinct(node, context);
    NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
    NAM_ASSIGN_OR_RETURN(Expr b, Expression(node.Field("rexpr"), context));
    return Distinct(std::move(a), std::move(b), position);
  };
  NAM_ASSIGN_OR_RETURN(Expr distinct, test());
  return negated ? builder_.Not(std::move(distinct), position) : std::move(distinct);
}

absl::StatusOr<Expr> ExpressionBinder::NullIf(const Node& node, const Context& context) {
  const int position = node.position();
  std::vector<Expr> parts(3);
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
  NAM_ASSIGN_OR_RETURN(Expr b, Expression(node.Field("rexpr"), context));
  NAM_RETURN_IF_ERROR(builder_.ResolveType(a, b.type));
  NAM_RETURN_IF_ERROR(builder_.ResolveType(a, Type::String()));
  // The result has the type to which the operator = converts the first operand.
  const bool exact = a.type.exact();
  if (exact && b.type.real()) {
    NAM_ASSIGN_OR_RETURN(a, builder_.Cast(std::move(a), Type::Double(), position));
  } else if (exact && DeclaredType(b).numeric()) {
    NAM_RETURN_IF_ERROR(builder_.AsDecimal(a));
  }
  NAM_ASSIGN_OR_RETURN(parts[2], builder_.Duplicate(a));
  NAM_ASSIGN_OR_RETURN(parts[0], builder_.Compare(Op::kEqual, std::move(a), std::move(b), position));
  parts[1] = ExpressionBuilder::UntypedNull(position);
  NAM_ASSIGN_OR_RETURN(Expr result, builder_.Case(std::move(parts), position));
  // varchar has the operators of text.
  if (result.type.kind == TypeKind::kString && !plan::IsChar(result.type)) result.declared = SqlType::Text();
  return result;
}

absl::StatusOr<Expr> ExpressionBinder::Coalesce(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"args"}));
  const int position = node.position();
  std::vector<Expr> values;
  for (const Node& arg : node.List("args")) {
    const ExpressionBuilder::Conditional conditional(builder_);
    NAM_ASSIGN_OR_RETURN(Expr value, Expression(arg, context));
    values.push_back(std::move(value));
  }
  std::vector<Expr*> all;
  for (Expr& value : values) all.push_back(&value);
  NAM_RETURN_IF_ERROR(builder_.Unify(all, "COALESCE"));
  std::vector<Expr> parts;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(Expr tested, builder_.Duplicate(values[i]));
    NAM_ASSIGN_OR_RETURN(Expr null, builder_.IsNull(std::move(tested), position));
    NAM_ASSIGN_OR_RETURN(Expr present, builder_.Not(std::move(null), position));
    parts.push_back(std::move(present));
    parts.push_back(std::move(values[i]));
  }
  if (parts.empty()) return std::move(values.at(0));
  parts.push_back(std::move(values.back()));
  return builder_.Case(std::move(parts), position);
}

absl::StatusOr<Expr> ExpressionBinder::Case(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"arg", "args", "defresult"}));
  Expr subject;
  const bool simple = node.Has("arg");
  if (simple) {
    NAM_ASSIGN_OR_RETURN(subject, Expression(node.Field("arg"), context));
    NAM_RETURN_IF_ERROR(builder_.ResolveType(subject, Type::String()));  // whatever it is compared with
  }
  std::vector<Expr> parts;
  const ExpressionBuilder::Conditional conditional(builder_);
  for (const Node& when : node.List("args")) {
    NAM_RETURN_IF_ERROR(when.Only({"expr", "result"}));
    Expr condition;
    if (simple) {
      NAM_ASSIGN_OR_RETURN(Expr left, builder_.Duplicate(subject));
      NAM_ASSIGN_OR_RETURN(Expr right, Expression(when.Field("expr"), context));
      NAM_ASSIGN_OR_RETURN(condition,
                           builder_.Compare(Op::kEqual, std::move(left), std::move(right), when.position()));
    } else {
      NAM_ASSIGN_OR_RETURN(condition, Boolean(when.Field("expr"), context));
    }
    parts.push_back(std::move(condition));
    NAM_ASSIGN_OR_RETURN(Expr result, Expression(when.Field("result"), context));
    parts.push_back(std::move(result));
  }
  if (node.Has("defresult")) {
    NAM_ASSIGN_OR_RETURN(Expr otherwise, Expression(node.Field("defresult"), context));
    parts.push_back(std::move(otherwise));
  } else {
    parts.push_back(ExpressionBuilder::UntypedNull(node.position()));
  }
  return builder_.Case(std::move(parts), node.position(), /*by_else=*/true);
}

absl::StatusOr<Expr> ExpressionBinder::CastExpression(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"arg", "typeName"}));
  if (IsIntervalConstant(node)) return IntervalConstant(node);
  const std::vector<std::string> type = node.Field("typeName").Names("names");
  // Floating point has room for numbers that no decimal holds.
  if (node.Field("arg").Has("fval") && !type.empty() &&
      (type.back() == "float8" || type.back() == "float4")) {
    const std::string number = node.Field("arg").Field("fval").Text("fval");
    Expr text = ExpressionBuilder::UntypedString(number, node.position());
    NAM_ASSIGN_OR_RETURN(const CastTarget to, TypeOfName(node.Field("typeName"), text));
    return builder_.Cast(std::move(text), to.type, node.position(), to.width);
  }
  NAM_ASSIGN_OR_RETURN(Expr operand, Expression(node.Field("arg"), context));
  NAM_ASSIGN_OR_RETURN(const CastTarget to, TypeOfName(node.Field("typeName"), operand));
  // Of the integer types only integer is cast to boolean; the written type tells them apart.
  const Node& from = node.Field("arg");
  if (to.type.kind == TypeKind::kBool && operand.type.kind == TypeKind::kInteger) {
    const std::vector<std::string> names =
        from.Is("TypeCast") ? from.Field("typeName").Names("names") : std::vector<std::string>();
    const bool small = !names.empty() && names.back() == "int2";
    const bool big = (!names.empty() && names.back() == "int8") || from.Has("fval");
    if (small || big) {
      return UserError(sqlstate::kCannotCast,
                       absl::StrCat("cannot cast ", small ? "smallint" : "bigint", " to boolean"),
                       node.position(), "cast it to integer first");
    }
  }
  if (to.declared.oid == 0) return builder_.Cast(std::move(operand), to.type, node.position(), to.width);
  return builder_.Cast(std::move(operand), to.type, node.position(), to.width, to.declared);
}

}  // namespace nam::sql
