#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/aggregate.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "sql/declared_type.h"
#include "sql/expression_binder.h"
#include "sql/logical_select.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::sql {

using plan::Aggregate;
using plan::AggregateFunction;
using plan::Expr;
using plan::MakeLiteral;
using plan::Op;

namespace {

struct NamedAggregate {
  const char* name;
  AggregateFunction function;
};
constexpr NamedAggregate kAggregates[] = {{"count", AggregateFunction::kCount},
                                          {"sum", AggregateFunction::kSum},
                                          {"min", AggregateFunction::kMin},
                                          {"max", AggregateFunction::kMax},
                                          {"avg", AggregateFunction::kAverage},
                                          {"bool_and", AggregateFunction::kBoolAnd},
                                          {"every", AggregateFunction::kBoolAnd},
                                          {"bool_or", AggregateFunction::kBoolOr},
                                          {"bit_and", AggregateFunction::kBitAnd},
                                          {"bit_or", AggregateFunction::kBitOr},
                                          {"bit_xor", AggregateFunction::kBitXor},
                                          {"variance", AggregateFunction::kVarSamp},
                                          {"var_samp", AggregateFunction::kVarSamp},
                                          {"var_pop", AggregateFunction::kVarPop},
                                          {"stddev", AggregateFunction::kStddevSamp},
                                          {"stddev_samp", AggregateFunction::kStddevSamp},
                                          {"stddev_pop", AggregateFunction::kStddevPop},
                                          {"covar_pop", AggregateFunction::kCovarPop},
                                          {"covar_samp", AggregateFunction::kCovarSamp},
                                          {"corr", AggregateFunction::kCorr},
                                          {"regr_count", AggregateFunction::kCount},  // over pairs
                                          {"regr_avgx", AggregateFunction::kRegrAvgX},
                                          {"regr_avgy", AggregateFunction::kRegrAvgY},
                                          {"regr_sxx", AggregateFunction::kRegrSxx},
                                          {"regr_syy", AggregateFunction::kRegrSyy},
                                          {"regr_sxy", AggregateFunction::kRegrSxy},
                                          {"regr_slope", AggregateFunction::kRegrSlope},
                                          {"regr_intercept", AggregateFunction::kRegrIntercept},
                                          {"regr_r2", AggregateFunction::kRegrR2},
                                          {"string_agg", AggregateFunction::kStringAggregate}};

}  // namespace

const std::vector<std::string>& AggregateNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const NamedAggregate& known : kAggregates) all.emplace_back(known.name);
    return all;
  }();
  return names;
}

AggregateFunction AggregateOfName(const std::string& name) {
  const NamedAggregate* found = std::find_if(std::begin(kAggregates), std::end(kAggregates),
                                             [&](const NamedAggregate& known) { return name == known.name; });
  NAM_CHECK(found != std::end(kAggregates), "the name of an aggregate");
  return found->function;
}

namespace {

/// A function whose name may have been meant: misspelled names begin like it.
std::string FunctionLike(const std::string& name) {
  constexpr size_t kShortestMisspelled = 4;
  if (name.size() < kShortestMisspelled) return {};
  std::vector<std::string> names = AggregateNames();
  for (const plan::Signature& signature : plan::Signatures()) names.emplace_back(signature.name);
  // Some only the binder calls.
  std::erase_if(names, [&](const std::string& other) {
    return !IsPostgresFunction(other) || absl::ascii_tolower(static_cast<unsigned char>(name[0])) != other[0];
  });
  return DidYouMean(name, names);
}

/// The function's plain name without pg_catalog.
absl::StatusOr<std::string> FunctionName(const Node& node) {
  const std::vector<std::string> name = node.Names("funcname");
  if (name.empty() || name.size() > 2 || (name.size() == 2 && name[0] != "pg_catalog")) {
    return Refusal("functions with a schema are not supported", node.position(),
                   "write the function's name alone");
  }
  return name.back();
}

absl::Status RefuseFunction(const Node& node, const std::string& name) {
  const char* const hint = name == "generate_series"
                               ? "write it in FROM"
                               : "PostgreSQL has it, NAM has not: compose it of other functions";
  return Refusal(absl::StrCat("function ", Quote(name), " is not supported"), node.position(), hint);
}

/// Aggregates and window functions are computed over a query's rows (LogicalSelect::Call): here are none.
absl::Status NotAllowed(const Node& node, const char* what, const char* state, Clause clause) {
  return UserError(state, absl::StrCat(what, " are not allowed in ", ClauseName(clause)), node.position());
}

/// Refuses clauses inside the call of a function that is neither an aggregate nor a window function.
absl::Status RefuseCallClauses(const Node& node, const std::string& name) {
  const int position = node.position();
  if (node.Has("over")) {
    return UserError(
        sqlstate::kWrongObjectType,
        absl::StrCat("OVER specified, but ", name, " is not a window function nor an aggregate function"),
        position);
  }
  const std::pair<bool, const char*> of_aggregates[] = {{node.Flag("agg_star"), "(*)"},
                                                        {node.Flag("agg_distinct"), "DISTINCT"},
                                                        {node.Flag("agg_within_group"), "WITHIN GROUP"},
                                                        {node.Has("agg_order"), "ORDER BY"},
                                                        {node.Has("agg_filter"), "FILTER"}};
  for (const auto& [written, clause] : of_aggregates) {
    if (!written) continue;
    return UserError(sqlstate::kWrongObjectType,
                     absl::StrCat(clause, " specified, but ", name, " is not an aggregate function"),
                     position);
  }
  if (node.Flag("func_variadic"))
    return Refusal("VARIADIC is not supported", node.text().Find({"variadic"}, position));
  return node.Only({"funcname", "args", "funcformat"});
}

}  // namespace

absl::StatusOr<Type> AggregateType(AggregateFunction function, const Expr& argument,
                                   const Expr& second_argument, const std::string& name, int position) {
  const Type &type = argument.type, &second = second_argument.type;
  const auto number = [](const Type& of) { return of.exact() || of.real(); };
  switch (function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
      return Type::Integer();
    case AggregateFunction::kCountDistinct:
      return Type::Integer();
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      if (type.kind == TypeKind::kUuid || type.kind == TypeKind::kBytes) break;  // PostgreSQL does not either
      if (type.kind != TypeKind::kBool && type.kind != TypeKind::kNull) return type;
      break;
    case AggregateFunction::kSum:
      if (number(type) || type.kind == TypeKind::kInterval) return type;
      break;
    case AggregateFunction::kAverage:
      if (type.kind == TypeKind::kInterval) return type;
      if (type.real()) return Type::Double();
      if (type.exact()) return Type::Numeric();
      break;
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
      if (type.kind == TypeKind::kBool) return type;
      break;
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      if (type.kind == TypeKind::kInteger) return type;
      break;
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      if (type.real()) return Type::Double();
      if (type.exact()) return Type::Numeric();
      break;
    case AggregateFunction::kStringAggregate:
      if (type.kind == TypeKind::kString && second.kind == TypeKind::kString) return Type::String();
      break;
    default:
      if (number(type) && number(second)) return Type::Double();
  }
  const bool pair = plan::ArgumentsOf(function) > 1;
  return UserError(
      sqlstate::kNoSuchOperator,
      absl::StrCat("function does not exist: ", name, "(", ShownType(argument), pair ? ", " : "",
                   pair ? ShownType(second_argument) : "", ")"),
      position,
      absl::StrCat(name, function == AggregateFunction::kMin || function == AggregateFunction::kMax
                             ? " takes numbers, dates, times, timestamps, intervals and strings"
                         : function == AggregateFunction::kSum || function == AggregateFunction::kAverage
                             ? " takes numbers, intervals and times"
                         : plan::HasMoments(function) ? " takes numbers"
                                                      : " takes other types"));
}

absl::StatusOr<Expr> ExpressionBinder::Function(const Node& node, const Context& context) {
  NAM_ASSIGN_OR_RETURN(const std::string name, FunctionName(node));
  if (name == "extract" && node.Text("funcformat") == "COERCE_SQL_SYNTAX") return Extract(node, context);
  const auto& aggregates = AggregateNames();
  const bool aggregate = std::find(aggregates.begin(), aggregates.end(), name) != aggregates.end();
  if (IsWindowFunction(name) || (aggregate && node.Has("over")))
    return NotAllowed(node, "window functions", sqlstate::kWindowingError, context.clause);
  if (aggregate) return NotAllowed(node, "aggregates", sqlstate::kGroupingError, context.clause);
  constexpr const char* kOthers[] = {"now",
                                     "current_schema",
                                     "transaction_timestamp",
                                     "statement_timestamp",
                                     "clock_timestamp",
                                     "pi",
                                     "pg_typeof",
                                     "date",
                                     "int2",
                                     "int4",
                                     "int8",
                                     "float4",
                                     "float8",
                                     "text"};
  const bool other = std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
  if (other || ExpressionBuilder::IsFunction(name)) {
    NAM_RETURN_IF_ERROR(RefuseCallClauses(node, name));
    return FunctionCall(node, name, context);
  }
  if (node.Text("funcformat") == "COERCE_SQL_SYNTAX" || IsPostgresFunction(name))
    return RefuseFunction(node, name);
  return UnknownFunction(node, name, context);
}

/// A function that PostgreSQL does not have either: binds its arguments for their types, and their errors
/// come first.
absl::StatusOr<Expr> ExpressionBinder::UnknownFunction(const Node& node, const std::string& name,
                                                       const Context& context) {
  std::vector<Expr> operands;
  for (const Node& arg : node.List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr operand, Expression(arg, context));
    operands.push_back(std::move(operand));
  }
  return ExpressionBuilder::NoSuchFunction(name, operands, node.position(), FunctionLike(name));
}

bool IsIntervalConstant(const Node& node) {
  if (!node.Is("TypeCast") || !node.Field("arg").Is("A_Const")) return false;
  if (!node.Field("arg").Has("sval") && !node.Field("arg").Flag("isnull")) return false;
  const std::vector<std::string> names = node.Field("typeName").Names("names");
  return !names.empty() && names.back() == "interval";
}

namespace {

/// A name for an output column, and whether it is better than the surrounding expression's.
struct FoundName {
  std::string name = "?column?";
  bool strong = false;
};

FoundName FindName(const Node& node);

/// The name of the only column, perhaps `?column?`.
FoundName NameOfSubquery(const Node& node) {
  if (node.Text("subLinkType") == "EXISTS_SUBLINK") return {"exists", true};
  if (node.Text("subLinkType") != "EXPR_SUBLINK") return {};
  Node select = node.Field("subselect");
  while (select.Has("larg")) select = select.Field("larg");
  if (select.Has("valuesLists")) return {"column1", true};
  const std::vector<Node> targets = select.List("targetList");
  if (targets.empty()) return {};
  if (targets[0].Has("name")) return {targets[0].Text("name"), true};
  return {FindName(targets[0].Field("val")).name, true};
}

/// Follows PostgreSQL's FigureColname.
FoundName FindName(const Node& node) {
  const auto last = [](const std::vector<std::string>& names) {
    return names.empty() || names.back().empty() ? FoundName() : FoundName{names.back(), true};  // empty: `*`
  };
  if (node.Is("ColumnRef")) return last(node.Names("fields"));
  if (node.Is("FuncCall")) return last(node.Names("funcname"));
  if (node.Is("CoalesceExpr")) return {"coalesce", true};
  if (node.Is("MinMaxExpr")) return {node.Text("op") == "IS_LEAST" ? "least" : "greatest", true};
  if (node.Is("SQLValueFunction"))  // SVFOP_CURRENT_DATE
    return {absl::AsciiStrToLower(absl::StripPrefix(node.Text("op"), "SVFOP_")), true};
  if (node.Is("GroupingFunc")) return {"grouping", true};
  if (node.Is("SubLink")) return NameOfSubquery(node);
  if (node.Is("A_Expr") && node.Text("kind") == "AEXPR_NULLIF") return {"nullif", true};
  if (node.Is("CaseExpr")) {
    FoundName otherwise = FindName(node.Field("defresult"));
    return otherwise.strong ? otherwise : FoundName{"case", false};
  }
  if (node.Is("TypeCast")) {
    FoundName inner = FindName(node.Field("arg"));
    if (inner.strong) return inner;
    return {last(node.Field("typeName").Names("names")).name, false};
  }
  return {};
}

}  // namespace

std::string OutputName(const Node& node) {
  return FindName(node).name;
}

namespace {

/// decimal, decimal(p), decimal(p, s).
absl::StatusOr<CastTarget> DecimalOfName(const Node& type_name, const Expr& from) {
  const std::vector<Node> modifiers = type_name.List("typmods");
  if (modifiers.empty()) {
    if (from.type.kind == TypeKind::kDecimal || from.type.kind == TypeKind::kNumeric)
      return CastTarget{from.type};
    if (from.type.kind == TypeKind::kInteger) return CastTarget{Type::Decimal(0)};
    if (IsLiteral(from) && from.literal.null) return CastTarget{Type::Decimal(0)};
    // Each value has its own; other types have no such cast.
    return CastTarget{Type::Numeric()};
  }
  int64_t numbers[2] = {0, 0};
  for (size_t i = 0; i < modifiers.size() && i < 2; ++i) {
    if (!modifiers[i].Has("ival")) {
      // PostgreSQL reads a plain name as a text, and the text as a number.
      const bool name = modifiers[i].Is("ColumnRef") && modifiers[i].List("fields").size() == 1;
      return UserError(name                         ? sqlstate::kBadText
                       : modifiers[i].Is("A_Const") ? sqlstate::kBadParameter
                                                    : sqlstate::kSyntaxError,
                       "a decimal's precision and scale are whole numbers", modifiers[i].position());
    }
    numbers[i] = type_name.text().IntegerAt(modifiers[i].position());
  }
  const auto [precision, scale] = numbers;
  if (modifiers.size() > 2 || precision < 1 || precision > kMaxDecimalDigits || scale < 0 ||
      scale > precision) {
    return UserError(sqlstate::kBadParameter,
                     "a decimal has up to 38 digits, and no more decimals than digits", type_name.position(),
                     "write decimal(38, 2)");
  }
  return CastTarget{Type::Decimal(static_cast<uint8_t>(scale)),
                    precision == kMaxDecimalDigits ? -1 : static_cast<int>(precision),
                    SqlType::Numeric(static_cast<int>(precision), static_cast<int>(scale))};
}

/// varchar, varchar(n), char(n).
absl::StatusOr<CastTarget> TextOfName(const Node& type_name, bool padded) {
  const std::vector<Node> modifiers = type_name.List("typmods");
  if (modifiers.empty()) {
    if (padded)
      return Refusal("char without a length is not supported", type_name.position(), "write char(n)");
    return CastTarget{Type::String(Type::kAnyLength)};
  }
  constexpr int64_t kLongest = 10'485'760;  // as PostgreSQL
  // Modifiers that the parser adds (char is char(1)) have no place in the text.
  const int64_t length = modifiers[0].position() >= 0 ? type_name.text().IntegerAt(modifiers[0].position())
                                                      : modifiers[0].Field("ival").Integer("ival");
  if (modifiers.size() > 1 || length < 1 || length > kLongest)
    return UserError(sqlstate::kBadParameter, "a length goes from 1 to 10485760", type_name.position());
  const auto characters = static_cast<uint32_t>(length);
  return CastTarget{padded ? plan::CharType(characters) : Type::String(characters)};
}

}  // namespace

absl::StatusOr<CastTarget> TypeOfName(const Node& type_name, const Expr& from) {
  if (type_name.Has("arrayBounds")) return Refusal("arrays are not supported", type_name.position());
  return ElementTypeOfName(type_name, from);
}

absl::StatusOr<CastTarget> ElementTypeOfName(const Node& type_name, const Expr& from) {
  const int position = type_name.position();
  NAM_RETURN_IF_ERROR(type_name.Only({"names", "typmods", "typemod", "arrayBounds"}));
  const std::vector<std::string> names = type_name.Names("names");
  if (names.empty() || names.size() > 2 || (names.size() == 2 && names[0] != "pg_catalog")) {
    return Refusal("type names with a schema are not supported", position);
  }
  const std::string& name = names.back();
  const bool plain = type_name.List("typmods").empty();
  if (name == "numeric" || name == "decimal") {
    return DecimalOfName(type_name, from);
  }
  if (plain && name == "int2") return CastTarget{Type::Integer(), 2};
  if (plain && name == "int4") return CastTarget{Type::Integer(), 4};
  if (plain && name == "int8") return CastTarget{Type::Integer(), 8};
  if (plain && name == "date") return CastTarget{Type::Date()};
  if (plain && name == "timestamp") return CastTarget{Type::Timestamp()};
  if (plain && name == "timestamptz") return CastTarget{Type::TimestampTz()};
  if (plain && name == "time") return CastTarget{Type::Time()};
  if (plain && name == "bool") return CastTarget{Type::Bool()};
  if (plain && name == "float8") return CastTarget{Type::Double()};
  if (plain && name == "float4") return CastTarget{Type::Real()};
  if (plain && name == "interval") return CastTarget{Type::Interval()};
  if (plain && name == "uuid") return CastTarget{Type::Uuid()};
  if (plain && name == "bytea") return CastTarget{Type::Bytes()};
  if (name == "varchar" || name == "bpchar") return TextOfName(type_name, name == "bpchar");
  if (plain && name == "text") return CastTarget{Type::String()};
  std::string hint =
      "types are smallint, integer, bigint, decimal(p, s), double precision, real, date, time, timestamp, "
      "timestamptz, interval, boolean, char(n), varchar(n), text, uuid and bytea";
  if (name == "timestamp" || name == "timestamptz" || name == "time")
    hint = "times have microseconds: leave the precision out";
  if (name == "timetz") hint = "use time, which has no time zone, or timestamptz";
  return Refusal(absl::StrCat("type ", name, plain ? "" : "(…)", " is not supported"), position, hint);
}

}  // namespace nam::sql
