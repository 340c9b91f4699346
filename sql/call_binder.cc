#include <algorithm>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "plan/cast.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "plan/time_field.h"
#include "sql/declared_type.h"
#include "sql/expression_binder.h"
#include "sql/relation_names.h"
#include "sql/similar_pattern.h"
#include "types/interval.h"
#include "types/sql_error.h"
#include "types/time_zone.h"

/// Calls, operators that are functions, tests of truth, rows and times.
namespace nam::sql {

using plan::Expr;
using plan::IsLiteral;
using plan::MakeLiteral;
using plan::Op;

namespace {

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The statement's time as a value of a type; a date, a time or a timestamp is by the session's clocks.
absl::StatusOr<Expr> Now(const Node& node, TypeKind kind, bool of_statement = false) {
  const StatementTime& time = node.text().time();
  const std::optional<int64_t> now = time.Now(of_statement);
  if (!now) return Refusal("the current time is not supported here", node.position(), "write a constant");
  if (kind == TypeKind::kTimestampTz) return MakeLiteral(Value::TimestampTz(*now), node.position());
  const TimeZone* zone = TimeZone::OfThread(time.zone);
  const int64_t local = zone != nullptr ? zone->LocalOf(*now) : *now;
  return MakeLiteral(kind == TypeKind::kDate   ? Value::Date(DayOf(local))
                     : kind == TypeKind::kTime ? Value::Time(local - DayOf(local) * kMicrosecondsPerDay)
                                               : Value::Timestamp(local),
                     node.position());
}

absl::StatusOr<Expr> CurrentSchemaOf(const Node& node) {
  TableSource* const tables = node.text().time().tables;
  if (tables == nullptr)
    return Refusal("the current schema is not supported here", node.position(), "write a constant");
  NAM_ASSIGN_OR_RETURN(std::optional<std::string> schema, CurrentSchema(*tables));
  return MakeLiteral(schema.has_value() ? Value::String(*std::move(schema)) : Value::Null(Type::String()),
                     node.position());
}

/// The type of a function named like a type: a cast.
std::optional<Type> TypeOfCall(std::string_view name) {
  if (IsOneOf(name, {"int2", "int4", "int8"})) return Type::Integer();
  if (name == "float8") return Type::Double();
  if (name == "float4") return Type::Real();
  if (name == "text") return Type::String();
  return std::nullopt;
}

/// Bits of PostgreSQL's INTERVAL_MASK.
std::optional<IntervalField> FieldOfMask(int64_t mask) {
  constexpr std::pair<int64_t, IntervalField> kMasks[] = {
      {1 << 1, IntervalField::kMonth}, {1 << 2, IntervalField::kYear},    {1 << 3, IntervalField::kDay},
      {1 << 10, IntervalField::kHour}, {1 << 11, IntervalField::kMinute}, {1 << 12, IntervalField::kSecond}};
  std::optional<IntervalField> last;  // for YEAR TO MONTH, DAY TO SECOND, …: finer parts are cut
  int64_t known = 0;
  for (const auto& [bits, field] : kMasks) {
    if ((mask & bits) == 0) continue;
    known |= bits;
    if (!last || *last != IntervalField::kMonth || field != IntervalField::kYear) last = field;
  }
  return known == mask ? last : std::nullopt;
}

/// In MINUTE TO SECOND `1:30` is a minute and a half.
void AddHours(std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return;
  size_t first = colon;
  while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
  text.insert(first, "0:");
}

/// Drops parts finer than the field.
Interval CutTo(Interval interval, IntervalField field) {
  constexpr int64_t kMinute = 60'000'000, kHour = 60 * kMinute;
  if (field == IntervalField::kYear) interval.months -= interval.months % 12;
  if (field == IntervalField::kYear || field == IntervalField::kMonth) interval.days = 0;
  if (field == IntervalField::kHour) interval.us -= interval.us % kHour;
  if (field == IntervalField::kMinute) interval.us -= interval.us % kMinute;
  if (field == IntervalField::kYear || field == IntervalField::kMonth || field == IntervalField::kDay)
    interval.us = 0;
  return interval;
}

}  // namespace

absl::StatusOr<Expr> ExpressionBinder::IntervalConstant(const Node& node) {
  const Node type = node.Field("typeName");
  const std::vector<Node> modifiers = type.List("typmods");
  IntervalField field = IntervalField::kNone;
  if (!modifiers.empty()) {
    const std::optional<IntervalField> known = FieldOfMask(modifiers[0].Field("ival").Integer("ival"));
    if (!known || modifiers.size() > 1) {
      return Refusal("intervals of a precision are not supported", type.position(),
                     "units are YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, and those of one TO another");
    }
    field = *known;
  }
  const Node constant = node.Field("arg");
  const int position = constant.position();
  if (constant.Flag("isnull")) return MakeLiteral(Value::Null(Type::Interval()), position);
  std::string text = constant.Field("sval").Text("sval");
  constexpr int64_t kMinuteToSecond = 1 << 11 | 1 << 12;
  if (!modifiers.empty() && modifiers[0].Field("ival").Integer("ival") == kMinuteToSecond) AddHours(text);
  const absl::StatusOr<Interval> interval = ParseInterval(text, field);
  if (interval.ok()) return MakeLiteral(Value::Span(CutTo(*interval, field)), position);
  if (absl::IsOutOfRange(interval.status())) {
    const bool of_field = absl::StrContains(interval.status().message(), "field");
    return UserError(of_field ? sqlstate::kIntervalFieldOverflow : sqlstate::kDateOutOfRange,
                     absl::StrCat(interval.status().message(), ": ", Quote(text)), position);
  }
  return UserError(sqlstate::kBadDate, "invalid interval: " + Quote(text), position,
                   "write interval '3' month, or interval '1 year 2 months 3 days 04:05:06'");
}

absl::StatusOr<Expr> ExpressionBinder::FunctionCall(const Node& node, const std::string& name,
                                                    const Context& context) {
  const int position = node.position();
  const std::vector<Node> args = node.List("args");
  if (args.empty() &&
      IsOneOf(name, {"now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"}))
    return Now(node, TypeKind::kTimestampTz, IsOneOf(name, {"statement_timestamp", "clock_timestamp"}));
  if (args.empty() && name == "current_schema") return CurrentSchemaOf(node);
  if (args.empty() && name == "pi") return MakeLiteral(Value::Double(std::numbers::pi), position);
  std::vector<Expr> operands;
  for (const Node& arg : args) {
    NAM_ASSIGN_OR_RETURN(Expr operand, Expression(arg, context));
    operands.push_back(std::move(operand));
  }
  const auto text = [](const Expr& e) {
    return ExpressionBuilder::IsUntyped(e) || e.type.kind == TypeKind::kString;
  };
  if (name == "substring" && operands.size() == 3 && text(operands[1]) && text(operands[2]))
    return SimilarPart(std::move(operands), position);
  if (name == "overlaps" && operands.size() == 4) return Overlaps(std::move(operands), position);
  if (name == "date" && operands.size() == 1) {
    const TypeKind kind = operands[0].type.kind;
    const bool moment =
        kind == TypeKind::kDate || kind == TypeKind::kTimestamp || kind == TypeKind::kTimestampTz;
    if (!moment && !text(operands[0])) return ExpressionBuilder::NoSuchFunction(name, operands, position);
    return builder_.Cast(std::move(operands[0]), Type::Date(), position);
  }
  if (name == "pg_typeof" && operands.size() == 1) {
    Expr type = MakeLiteral(Value::String(SqlTypeName(DeclaredType(operands[0]))), position);
    type.declared = SqlType::TypeOfTypes();
    return type;
  }
  if (const auto type = TypeOfCall(name); type && operands.size() == 1) {
    const Type& from = operands[0].type;
    const bool zoned = from.kind == TypeKind::kTimestampTz && type->kind == TypeKind::kString;
    if (!text(operands[0]) && !zoned && !plan::CastExists(from, *type))
      return ExpressionBuilder::NoSuchFunction(name, operands, position);
    const bool integer = type->kind == TypeKind::kInteger;
    return builder_.Cast(std::move(operands[0]), *type, position, integer ? name.back() - '0' : -1);
  }
  if (name == "age" && operands.size() == 1) {
    NAM_ASSIGN_OR_RETURN(Expr today, Now(node, TypeKind::kDate));
    operands.insert(operands.begin(), std::move(today));
  }
  return builder_.Call(name, std::move(operands), position);
}

/// SUBSTRING(text SIMILAR pattern ESCAPE escape).
absl::StatusOr<Expr> ExpressionBinder::SimilarPart(std::vector<Expr> operands, int position) {
  for (size_t i = 1; i < operands.size(); ++i) {
    NAM_RETURN_IF_ERROR(builder_.ResolveType(operands[i], Type::String()));
    if (!IsLiteral(operands[i]))
      return Refusal("SUBSTRING … SIMILAR takes constants", position, "use SUBSTRING(x FROM 'expression')");
  }
  if (operands[1].literal.null || operands[2].literal.null)
    return MakeLiteral(Value::Null(Type::String()), position);
  NAM_ASSIGN_OR_RETURN(std::string expression,
                       SimilarParts(operands[1].literal.text, operands[2].literal.text, position));
  operands.pop_back();
  operands[1] = MakeLiteral(Value::String(std::move(expression)), operands[1].position);
  return builder_.Call("substring_similar", std::move(operands), position);
}

namespace {

/// The common type of the ends of OVERLAPS: PostgreSQL takes the type of most of them, and moments if none is
/// a time or a timestamp.
Type TypeOfSpans(const std::vector<Expr>& operands) {
  const auto any = [&](TypeKind kind) {
    return std::any_of(operands.begin(), operands.end(),
                       [kind](const Expr& operand) { return operand.type.kind == kind; });
  };
  if (any(TypeKind::kTime)) return Type::Time();
  return any(TypeKind::kTimestamp) && !any(TypeKind::kTimestampTz) ? Type::Timestamp() : Type::TimestampTz();
}

bool IsSpanEnd(const Expr& operand) {
  constexpr TypeKind kKinds[] = {TypeKind::kDate, TypeKind::kTime, TypeKind::kTimestamp,
                                 TypeKind::kTimestampTz, TypeKind::kInterval};
  return ExpressionBuilder::IsUntyped(operand) ||
         std::find(std::begin(kKinds), std::end(kKinds), operand.type.kind) != std::end(kKinds);
}

/// Whether an end without a type could be an interval as well. PostgreSQL gives it the type of the other ends
/// if they have only one, which is no time: a time could become an interval.
bool IsAmbiguousSpan(const std::vector<Expr>& operands) {
  if (!std::all_of(operands.begin(), operands.end(), IsSpanEnd)) return false;  // no such function
  if (!ExpressionBuilder::IsUntyped(operands[1]) && !ExpressionBuilder::IsUntyped(operands[3])) return false;
  const auto known = std::find_if_not(operands.begin(), operands.end(), ExpressionBuilder::IsUntyped);
  if (known == operands.end()) return true;
  if (known->type.kind == TypeKind::kTime || known->type.kind == TypeKind::kInterval) return true;
  return std::any_of(known, operands.end(), [&](const Expr& operand) {
    return !ExpressionBuilder::IsUntyped(operand) && operand.type.kind != known->type.kind;
  });
}

}  // namespace

/// (a, b) OVERLAPS (c, d); b and d may be intervals.
absl::StatusOr<Expr> ExpressionBinder::Overlaps(std::vector<Expr> operands, int position) {
  if (IsAmbiguousSpan(operands)) {
    return UserError(sqlstate::kAmbiguousFunction, "OVERLAPS is not unique for these types", position,
                     "give the second ends a type: TIMESTAMP '…', INTERVAL '…'");
  }
  const Type type = TypeOfSpans(operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    Expr& operand = operands[i];
    if (operand.type.kind == TypeKind::kInterval && i % 2 == 1) {
      NAM_ASSIGN_OR_RETURN(Expr from, builder_.Duplicate(operands[i - 1]));
      NAM_ASSIGN_OR_RETURN(operand,
                           builder_.Arithmetic(Op::kAdd, std::move(from), std::move(operand), position));
      continue;
    }
    NAM_RETURN_IF_ERROR(builder_.ResolveType(operand, type));
    const bool date = operand.type.kind == TypeKind::kDate || operand.type.kind == TypeKind::kTimestamp;
    if (date && type.kind != TypeKind::kTime && operand.type.kind != type.kind) {
      NAM_ASSIGN_OR_RETURN(operand, builder_.Cast(std::move(operand), type, position));
    }
  }
  return builder_.Call("overlaps", std::move(operands), position);
}

absl::StatusOr<Expr> ExpressionBinder::CurrentTime(const Node& node) {
  const std::string op = node.Text("op");
  constexpr std::pair<const char*, TypeKind> kKnown[] = {{"SVFOP_CURRENT_DATE", TypeKind::kDate},
                                                         {"SVFOP_CURRENT_TIMESTAMP", TypeKind::kTimestampTz},
                                                         {"SVFOP_LOCALTIMESTAMP", TypeKind::kTimestamp},
                                                         {"SVFOP_LOCALTIME", TypeKind::kTime}};
  for (const auto& [known, kind] : kKnown) {
    if (op == known) return Now(node, kind);
  }
  if (op == "SVFOP_CURRENT_TIME") {
    return Refusal("CURRENT_TIME is not supported", node.position(),
                   "it is a time with time zone, which is no type here: write LOCALTIME");
  }
  if (op == "SVFOP_CURRENT_SCHEMA") return CurrentSchemaOf(node);
  return RefuseExpression(node);
}

absl::StatusOr<Expr> ExpressionBinder::Extract(const Node& node, const Context& context) {
  const int position = node.position();
  const std::vector<Node> args = node.List("args");
  if (args.size() != 2) return Refusal("this form of EXTRACT is not supported", position);
  std::string field = absl::AsciiStrToLower(args[0].Field("sval").Text("sval"));
  NAM_ASSIGN_OR_RETURN(Expr time, Expression(args[1], context));
  if (ExpressionBuilder::IsUntyped(time)) {
    return UserError(sqlstate::kAmbiguousFunction, "function extract(unknown, unknown) is not unique",
                     position, "give the argument a type: TIMESTAMP '…', INTERVAL '…'");
  }
  if (time.type.kind == TypeKind::kTimestampTz) {
    const bool offset = field == "timezone";
    NAM_ASSIGN_OR_RETURN(time, builder_.FieldSource(field, std::move(time), position));
    field = ExpressionBuilder::UnzonedField(field);
    if (offset) {
      std::vector<Expr> operands;
      operands.push_back(MakeLiteral(Value::String(field), args[0].position()));
      operands.push_back(std::move(time));
      NAM_ASSIGN_OR_RETURN(Expr seconds, builder_.Call("extract", std::move(operands), position));
      return builder_.Cast(std::move(seconds), Type::Integer(), position, -1, SqlType::Numeric());
    }
  }
  const TypeKind kind = time.type.kind;
  const std::optional<plan::TimeField> known = plan::TimeFieldOf(field);
  const bool calendar = kind == TypeKind::kDate || kind == TypeKind::kTimestamp;
  if (calendar && known == plan::TimeField::kYear)
    return builder_.Extract(Op::kExtractYear, std::move(time), position);
  if (calendar && known == plan::TimeField::kMonth)
    return builder_.Extract(Op::kExtractMonth, std::move(time), position);
  if (calendar && known == plan::TimeField::kDay)
    return builder_.Extract(Op::kExtractDay, std::move(time), position);
  if (!known && (calendar || kind == TypeKind::kInterval || kind == TypeKind::kTime)) {
    const bool other = IsOneOf(field, {"julian", "timezone", "timezone_hour", "timezone_minute"});
    if (other)
      return Refusal(absl::StrCat("EXTRACT(", field, " FROM …) is not supported"), args[0].position());
    return UserError(sqlstate::kBadParameter,
                     absl::StrCat("unit ", Quote(field), " not recognized for type ", TypeName(time.type)),
                     args[0].position());
  }
  std::vector<Expr> operands;
  operands.push_back(MakeLiteral(Value::String(field), args[0].position()));
  operands.push_back(std::move(time));
  return builder_.Call("extract", std::move(operands), position);
}

namespace {

struct CalledOperator {
  const char* symbol;
  const char* function;
  bool negated;
};
constexpr CalledOperator kBinaryOperators[] = {
    {"^", "power", false},        {"~", "textregexeq", false},    {"~*", "texticregexeq", false},
    {"!~", "textregexeq", true},  {"!~*", "texticregexeq", true}, {"~~", "like", false},
    {"!~~", "like", true},        {"~~*", "texticlike", false},   {"!~~*", "texticlike", true},
    {"^@", "starts_with", false}, {"&", "int8and", false},        {"|", "int8or", false},
    {"#", "int8xor", false},      {"<<", "int8shl", false},       {">>", "int8shr", false},
};
constexpr CalledOperator kUnaryOperators[] = {
    {"@", "abs", false}, {"|/", "sqrt", false}, {"||/", "cbrt", false}, {"~", "int8not", false}};

}  // namespace

std::optional<absl::StatusOr<Expr>> ExpressionBinder::CalledOperation(const std::string& symbol,
                                                                      const Node& node,
                                                                      const Context& context) {
  const Node left = node.Field("lexpr"), right = node.Field("rexpr");
  const int position = node.position();
  const auto bind = [&](const CalledOperator& known) -> absl::StatusOr<Expr> {
    std::vector<Expr> operands;
    if (left) {
      NAM_ASSIGN_OR_RETURN(Expr operand, Expression(left, context));
      operands.push_back(std::move(operand));
    }
    NAM_ASSIGN_OR_RETURN(Expr operand, Expression(right, context));
    operands.push_back(std::move(operand));
    NAM_ASSIGN_OR_RETURN(Expr call, builder_.Call(known.function, std::move(operands), position));
    return known.negated ? builder_.Not(std::move(call), position) : std::move(call);
  };
  for (const CalledOperator& known : kBinaryOperators) {
    if (left && symbol == known.symbol) return bind(known);
  }
  for (const CalledOperator& known : kUnaryOperators) {
    if (!left && symbol == known.symbol) return bind(known);
  }
  return std::nullopt;
}

absl::StatusOr<Expr> ExpressionBinder::MinMax(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"op", "args"}));
  std::vector<Expr> operands;
  for (const Node& arg : node.List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr operand, Expression(arg, context));
    operands.push_back(std::move(operand));
  }
  return builder_.Extreme(node.Text("op") != "IS_LEAST", std::move(operands), node.position());
}

absl::StatusOr<Expr> ExpressionBinder::BooleanTest(const Node& node, const Context& context) {
  NAM_RETURN_IF_ERROR(node.Only({"arg", "booltesttype"}));
  const int position = node.position();
  const std::string test = node.Text("booltesttype");
  NAM_ASSIGN_OR_RETURN(Expr operand, Boolean(node.Field("arg"), context));
  const bool negated = IsOneOf(test, {"IS_NOT_TRUE", "IS_NOT_FALSE", "IS_NOT_UNKNOWN"});
  Expr result;
  if (IsOneOf(test, {"IS_UNKNOWN", "IS_NOT_UNKNOWN"})) {
    NAM_ASSIGN_OR_RETURN(result, builder_.IsNull(std::move(operand), position));
  } else {
    if (IsOneOf(test, {"IS_FALSE", "IS_NOT_FALSE"})) {
      NAM_ASSIGN_OR_RETURN(operand, builder_.Not(std::move(operand), position));
    }
    std::vector<Expr> parts(1, std::move(operand));
    parts.push_back(MakeLiteral(Value::Bool(true), position));
    parts.push_back(MakeLiteral(Value::Bool(false), position));
    NAM_ASSIGN_OR_RETURN(result, builder_.Case(std::move(parts), position));
  }
  return negated ? builder_.Not(std::move(result), position) : std::move(result);
}

absl::StatusOr<Expr> ExpressionBinder::Distinct(Expr a, Expr b, int position) {
  std::vector<Expr> values(2);
  values[0] = std::move(a);
  values[1] = std::move(b);
  NAM_RETURN_IF_ERROR(builder_.ResolveType(values[0], values[1].type));
  NAM_RETURN_IF_ERROR(builder_.ResolveType(values[1], values[0].type));
  std::vector<Expr> parts(5);
  Expr again[2], tests[2];
  for (size_t i = 0; i < 2; ++i) {
    NAM_ASSIGN_OR_RETURN(Expr copy, builder_.Duplicate(values[i]));
    NAM_ASSIGN_OR_RETURN(tests[i], builder_.IsNull(std::move(copy), position));
  }
  NAM_ASSIGN_OR_RETURN(parts[1], builder_.Not(tests[1], position));
  parts[0] = std::move(tests[0]);
  parts[2] = std::move(tests[1]);
  parts[3] = MakeLiteral(Value::Bool(true), position);
  NAM_ASSIGN_OR_RETURN(parts[4],
                       builder_.Compare(Op::kNotEqual, std::move(values[0]), std::move(values[1]), position));
  return builder_.Case(std::move(parts), position);
}

// ─── Rows

absl::StatusOr<std::vector<Expr>> ExpressionBinder::Row(const Node& node, const Context& context) {
  std::vector<Expr> values;
  for (const Node& arg : node.List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr value, Expression(arg, context));
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<Expr> ExpressionBinder::CompareRows(Op op, std::vector<Expr> a, std::vector<Expr> b,
                                                   int position) {
  if (a.size() != b.size() || a.empty())
    return UserError(sqlstate::kSyntaxError, "unequal number of entries in row expressions", position);
  if (op == Op::kEqual || op == Op::kNotEqual) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < a.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(Expr part, builder_.Compare(op, std::move(a[i]), std::move(b[i]), position));
      parts.push_back(std::move(part));
    }
    return builder_.Junction(op == Op::kEqual ? Op::kAnd : Op::kOr, std::move(parts), position);
  }
  // (a, rest) < (b, more): a < b, or a = b and rest < more; from the last pair to the first.
  const Op strict = op == Op::kLess || op == Op::kLessEqual ? Op::kLess : Op::kGreater;
  Expr result;
  for (size_t i = a.size(); i-- > 0;) {
    if (i + 1 == a.size()) {
      NAM_ASSIGN_OR_RETURN(result, builder_.Compare(op, std::move(a[i]), std::move(b[i]), position));
      continue;
    }
    NAM_ASSIGN_OR_RETURN(Expr left, builder_.Duplicate(a[i]));
    NAM_ASSIGN_OR_RETURN(Expr right, builder_.Duplicate(b[i]));
    std::vector<Expr> tied(2), either(2);
    NAM_ASSIGN_OR_RETURN(tied[0], builder_.Compare(Op::kEqual, std::move(left), std::move(right), position));
    tied[1] = std::move(result);
    NAM_ASSIGN_OR_RETURN(either[0], builder_.Compare(strict, std::move(a[i]), std::move(b[i]), position));
    NAM_ASSIGN_OR_RETURN(either[1], builder_.Junction(Op::kAnd, std::move(tied), position));
    NAM_ASSIGN_OR_RETURN(result, builder_.Junction(Op::kOr, std::move(either), position));
  }
  return result;
}

absl::StatusOr<Expr> ExpressionBinder::RowIn(const Node& node, const Context& context) {
  const int position = node.position();
  NAM_ASSIGN_OR_RETURN(const std::vector<Expr> row, Row(node.Field("lexpr"), context));
  std::vector<Expr> matches;
  for (const Node& item : node.Field("rexpr").List("items")) {
    if (!item.Is("RowExpr"))
      return Refusal("IN of rows over something else is not supported", item.position());
    NAM_ASSIGN_OR_RETURN(std::vector<Expr> other, Row(item, context));
    std::vector<Expr> copy;
    for (const Expr& value : row) {
      NAM_ASSIGN_OR_RETURN(Expr again, builder_.Duplicate(value));
      copy.push_back(std::move(again));
    }
    NAM_ASSIGN_OR_RETURN(Expr equal, CompareRows(Op::kEqual, std::move(copy), std::move(other), position));
    matches.push_back(std::move(equal));
  }
  return builder_.Junction(Op::kOr, std::move(matches), position);
}

absl::StatusOr<Expr> ExpressionBinder::RowNullTest(const Node& node, const Context& context) {
  const int position = node.position();
  const bool present = node.Text("nulltesttype") == "IS_NOT_NULL";
  NAM_ASSIGN_OR_RETURN(std::vector<Expr> row, Row(node.Field("arg"), context));
  std::vector<Expr> tests;
  for (Expr& value : row) {
    NAM_ASSIGN_OR_RETURN(Expr test, builder_.IsNull(std::move(value), position));
    if (present) {
      NAM_ASSIGN_OR_RETURN(test, builder_.Not(std::move(test), position));
    }
    tests.push_back(std::move(test));
  }
  return builder_.Junction(Op::kAnd, std::move(tests), position);
}

absl::StatusOr<Expr> ExpressionBinder::RowDistinct(const Node& node, const Context& context) {
  const int position = node.position();
  NAM_ASSIGN_OR_RETURN(std::vector<Expr> a, Row(node.Field("lexpr"), context));
  NAM_ASSIGN_OR_RETURN(std::vector<Expr> b, Row(node.Field("rexpr"), context));
  if (a.size() != b.size())
    return UserError(sqlstate::kSyntaxError, "unequal number of entries in row expressions", position);
  std::vector<Expr> parts;
  for (size_t i = 0; i < a.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(Expr part, Distinct(std::move(a[i]), std::move(b[i]), position));
    parts.push_back(std::move(part));
  }
  return builder_.Junction(Op::kOr, std::move(parts), position);
}

}  // namespace nam::sql
