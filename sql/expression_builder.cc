#include "sql/expression_builder.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/number_digits.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::CharType;
using plan::Expr;
using plan::FitsInteger;
using plan::IsChar;
using plan::IsNullLiteral;
using plan::MakeLiteral;
using plan::Op;
using plan::Resolver;

constexpr size_t kMostDuplicatedNodes = 50000;
constexpr size_t kLongestFoldedBytes = 64 << 10;

bool DateAndTimestamp(const Type& a, const Type& b) {
  return a.kind == TypeKind::kDate && b.kind == TypeKind::kTimestamp;
}

bool IsMidnight(const Expr& e) {
  return plan::IsLiteral(e) && e.type.kind == TypeKind::kTimestamp && !e.literal.null &&
         e.literal.number % kMicrosecondsPerDay == 0;
}

bool IsNumber(const Type& type) {
  return type.exact() || type.real();
}

bool IsOwnScale(const Type& type) {
  return type.kind == TypeKind::kNumeric;
}

bool Comparable(const Type& a, const Type& b) {
  return a.kind == b.kind || (a.numeric() && b.numeric());
}

/// Whether a NULL operand makes the result NULL, whatever the other operand is.
bool Strict(const Expr& e) {
  const Op op = e.op;
  if (op == Op::kFunction) return plan::IsStrict(plan::FunctionOf(e));
  return (op >= Op::kAdd && op <= Op::kGreaterEqual) || op == Op::kNot || op == Op::kLike ||
         op == Op::kCast || (op >= Op::kExtractYear && op <= Op::kExtractDay);
}

absl::Status NoOperator(Op op, const Expr& a, const Expr& b, int position) {
  const bool comparison = op >= Op::kEqual && op <= Op::kGreaterEqual;
  const bool number_and_string = (a.type.exact() && b.type.kind == TypeKind::kString) ||
                                 (b.type.exact() && a.type.kind == TypeKind::kString);
  return UserError(sqlstate::kNoSuchOperator,
                   absl::StrCat("operator does not exist: ", KindName(a), " ", Symbol(op), " ", KindName(b)),
                   position,
                   comparison ? (number_and_string ? "convert one side, as in CAST(x AS integer)"
                                                   : "both sides of a comparison must have one type")
                              : "arithmetic takes numbers, dates, timestamps and intervals");
}

/// Whether the operator takes this type and, beside it, an operand of unknown type.
bool HasOperator(Op op, const Type& type) {
  switch (type.kind) {
    case TypeKind::kBool:
    case TypeKind::kUuid:
    case TypeKind::kBytes:
      return false;
    case TypeKind::kTime:
      return op != Op::kModulo;
    default:
      return RankOfTime(type) == 0 || op == Op::kAdd || op == Op::kSubtract;
  }
}

}  // namespace

absl::StatusOr<Expr> ExpressionBuilder::Fold(Expr expr) const {
  if (Strict(expr) && std::any_of(expr.children.begin(), expr.children.end(), IsNullLiteral)) {
    Expr null = MakeLiteral(Value::Null(expr.type), expr.position);
    null.declared = DeclaredType(expr);
    return null;
  }
  if (!IsConstant(expr)) return expr;
  absl::StatusOr<Value> value = Evaluate(expr, Resolver());
  if (!value.ok()) {
    if (conditional_ > 0) return expr;
    if (folding_ == nullptr) return value.status();
    folding_->Update(value.status());
    return expr;
  }
  value->type = expr.type;
  // A longer integer would become a decimal when the expression's text is bound again.
  if (expr.type.kind == TypeKind::kInteger && !FitsInteger(value->number, sizeof(int64_t))) return expr;
  // Plans carry literals: a long text is computed where it is needed.
  if (value->text.size() > kLongestFoldedBytes) return expr;
  Expr folded = MakeLiteral(*std::move(value), expr.position);
  folded.declared = DeclaredType(expr);
  return folded;
}

absl::Status ExpressionBuilder::Meet(Expr& expr, const Expr& other) const {
  const int position = expr.position;
  const bool to_double = IsNumber(expr.type) && IsNumber(other.type) && expr.type.kind != TypeKind::kDouble &&
                         (expr.type.real() || other.type.real()) && expr.type.kind != other.type.kind;
  if (to_double) {
    NAM_ASSIGN_OR_RETURN(expr, Cast(std::move(expr), Type::Double(), position));
    return absl::OkStatus();
  }
  // Beside a number of a known scale a constant has one, too, so that conditions on columns stay conditions
  // on their codes.
  if (IsOwnScale(expr.type) && other.type.numeric() && IsLiteral(expr)) {
    AsKnownScale(expr);
    return absl::OkStatus();
  }
  if (expr.type.numeric() && IsOwnScale(other.type) && !IsLiteral(other)) {
    NAM_ASSIGN_OR_RETURN(expr, Cast(std::move(expr), other.type, position));
    return absl::OkStatus();
  }
  if (RankOfTime(expr.type) > 0 && other.type.kind == TypeKind::kTimestampTz && expr.type != other.type) {
    NAM_ASSIGN_OR_RETURN(expr, Cast(std::move(expr), other.type, position));
    return absl::OkStatus();
  }
  // A timestamp at midnight is compared as its day, so that conditions on dates remain conditions on their
  // codes.
  if (DateAndTimestamp(other.type, expr.type) && IsMidnight(expr) && !IsLiteral(other)) {
    NAM_ASSIGN_OR_RETURN(expr, Cast(std::move(expr), Type::Date(), position));
    return absl::OkStatus();
  }
  if (!DateAndTimestamp(expr.type, other.type) || (IsMidnight(other) && !IsLiteral(expr)))
    return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(expr, Cast(std::move(expr), other.type, position));
  return absl::OkStatus();
}

absl::StatusOr<Expr> ExpressionBuilder::Compare(Op op, Expr a, Expr b, int position) const {
  if (IsUntyped(a) && IsUntyped(b)) NAM_RETURN_IF_ERROR(ResolveType(a, Type::String()));
  NAM_RETURN_IF_ERROR(ResolveType(a, b.type));
  NAM_RETURN_IF_ERROR(ResolveType(b, a.type));
  NAM_RETURN_IF_ERROR(MeetUnzoned(a, b));
  NAM_RETURN_IF_ERROR(MeetUnzoned(b, a));
  if (a.type.kind == TypeKind::kTime && b.type.kind == TypeKind::kInterval) {
    NAM_ASSIGN_OR_RETURN(a, Cast(std::move(a), b.type, position));
  } else if (b.type.kind == TypeKind::kTime && a.type.kind == TypeKind::kInterval) {
    NAM_ASSIGN_OR_RETURN(b, Cast(std::move(b), a.type, position));
  }
  NAM_RETURN_IF_ERROR(Meet(a, b));
  NAM_RETURN_IF_ERROR(Meet(b, a));
  if (!Comparable(a.type, b.type)) return NoOperator(op, a, b, position);
  std::vector<Expr> sides;
  sides.push_back(std::move(a));
  sides.push_back(std::move(b));
  return Fold(MakeNode(op, Type::Bool(), position, std::move(sides)));
}

namespace {

/// The type of `a op b`, numbers and dates only; kNull if there is no such operator.
Type ArithmeticType(Op op, const Type& a, const Type& b) {
  if (a.kind == TypeKind::kDate) {
    if (op == Op::kSubtract && b.kind == TypeKind::kDate) return Type::Integer();
    const bool moves = (op == Op::kAdd || op == Op::kSubtract) && b.kind == TypeKind::kInteger;
    return moves ? Type::Date() : Type::Null();
  }
  if (op != Op::kModulo && IsNumber(a) && IsNumber(b) && (a.real() || b.real()))
    return a.kind == TypeKind::kReal && b.kind == TypeKind::kReal ? Type::Real() : Type::Double();
  if (!a.exact() || !b.exact()) return Type::Null();
  if (IsOwnScale(a) || IsOwnScale(b)) return Type::Numeric();
  if (a.kind == TypeKind::kInteger && b.kind == TypeKind::kInteger) return Type::Integer();
  switch (op) {
    case Op::kMultiply:
      return Type::Decimal(a.scale + b.scale);
    case Op::kDivide:  // its scale depends on the values
      return Type::Numeric();
    default:
      return Type::Decimal(std::max(a.scale, b.scale));
  }
}

}  // namespace

absl::StatusOr<Expr> ExpressionBuilder::Arithmetic(Op op, Expr a, Expr b, int position) const {
  // An untyped operand gets the other side's type.
  const auto partner = [op](const Expr& other) {
    const TypeKind kind = other.type.kind;
    const bool moves = RankOfTime(other.type) > 1 || kind == TypeKind::kTime;
    if (moves && op == Op::kAdd) return Type::Interval();
    if (kind == TypeKind::kInterval && (op == Op::kMultiply || op == Op::kDivide)) return Type::Double();
    return other.type;
  };
  const auto ambiguous = [&] {
    return UserError(
        sqlstate::kAmbiguousFunction,
        absl::StrCat("operator is not unique: ", KindName(a), " ", Symbol(op), " ", KindName(b)), position,
        "Could not choose a best candidate operator. You might need to add explicit type casts.");
  };
  const auto timed_day = [](const Expr& e) { return e.type.kind == TypeKind::kTime; };
  if ((IsUntyped(a) && IsUntyped(b)) || (op == Op::kAdd && timed_day(a) && timed_day(b))) return ambiguous();
  // A date and an operand that could be days, a span or a time.
  const auto either = [op](const Expr& date, const Expr& other) {
    return op == Op::kAdd && date.type.kind == TypeKind::kDate && IsUntyped(other);
  };
  if (either(a, b) || either(b, a)) return ambiguous();
  if ((IsUntyped(a) && !HasOperator(op, b.type)) || (IsUntyped(b) && !HasOperator(op, a.type)))
    return NoOperator(op, a, b, position);
  // The span since midnight.
  for (Expr* side : {&a, &b}) {
    if (!timed_day(*side) || (op != Op::kMultiply && op != Op::kDivide)) continue;
    NAM_ASSIGN_OR_RETURN(*side, Cast(std::move(*side), Type::Interval(), position));
  }
  NAM_RETURN_IF_ERROR(ResolveType(a, partner(b)));
  NAM_RETURN_IF_ERROR(ResolveType(b, partner(a)));
  if (op == Op::kAdd && b.type.kind == TypeKind::kDate) std::swap(a, b);  // integer + date
  if (op == Op::kModulo && a.type.exact() && b.type.exact() &&
      (a.type.kind != TypeKind::kInteger || b.type.kind != TypeKind::kInteger)) {
    std::vector<Expr> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return Call("mod", std::move(operands), position);
  }
  const bool numeric = IsWholeNumeric(a) || IsWholeNumeric(b);
  if (numeric && op == Op::kDivide && b.type.numeric()) NAM_RETURN_IF_ERROR(AsDecimal(a));
  if (numeric && op == Op::kDivide && a.type.numeric()) NAM_RETURN_IF_ERROR(AsDecimal(b));
  const bool days = a.type.kind == TypeKind::kDate && IsWholeNumeric(b);
  const Type type = days                     ? Type::Null()
                    : IsLongResult(op, a, b) ? Type::Numeric()
                                             : ArithmeticType(op, a.type, b.type);
  const auto timed = [](const Expr& e) {
    return RankOfTime(e.type) > 1 || e.type.kind == TypeKind::kTime || e.type.kind == TypeKind::kInterval;
  };
  if (timed(a) || timed(b)) return TimeArithmetic(op, std::move(a), std::move(b), position);
  // + - and * take decimals of up to 38 digits as they are; / is of two numerics.
  const bool packs = IsOwnScale(type) && op == Op::kDivide;
  for (Expr* side : {&a, &b}) {
    if ((!type.real() && !packs) || side->type == type) continue;
    NAM_ASSIGN_OR_RETURN(*side, Cast(std::move(*side), type, position));
  }
  if (type.kind == TypeKind::kNull) return NoOperator(op, a, b, position);
  const bool whole = type.kind == TypeKind::kInteger && a.type.kind == TypeKind::kInteger;
  const SqlType declared = whole ? CommonDeclaredType({&a, &b}) : SqlType();
  std::vector<Expr> sides;
  sides.push_back(std::move(a));
  sides.push_back(std::move(b));
  Expr result = MakeNode(op, type, position, std::move(sides));
  result.declared = declared;
  return Fold(std::move(result));
}

void ExpressionBuilder::AsKnownScale(Expr& number) {
  if (!IsOwnScale(number.type) || !IsLiteral(number)) return;
  const Numeric own = number.literal.null ? Numeric() : number.literal.unpacked();
  Value value = Value::Decimal(own.digits, own.scale);
  value.null = number.literal.null;
  number = MakeLiteral(std::move(value), number.position);
  number.declared = SqlType::Numeric();
}

absl::Status ExpressionBuilder::AsDecimal(Expr& number) const {
  if (number.type.kind != TypeKind::kInteger) return absl::OkStatus();
  const int position = number.position;
  NAM_ASSIGN_OR_RETURN(number, Cast(std::move(number), Type::Decimal(0), position));
  return absl::OkStatus();
}

absl::StatusOr<Expr> ExpressionBuilder::Negate(Expr a, int position) const {
  NAM_RETURN_IF_ERROR(ResolveType(a, Type::Integer()));
  if (a.type.kind == TypeKind::kInterval)
    return TimeArithmetic(Op::kSubtract, MakeLiteral(Value::Span({}), position), std::move(a), position);
  if (!IsNumber(a.type)) {
    return UserError(sqlstate::kNoSuchOperator, absl::StrCat("operator does not exist: - ", KindName(a)),
                     position, "only numbers have a sign");
  }
  const Type type = a.type;
  const SqlType declared = type.kind == TypeKind::kInteger ? DeclaredType(a) : SqlType();
  Expr negated = MakeNode(Op::kNegate, type, position, {std::move(a)});
  negated.declared = declared;
  return Fold(std::move(negated));
}

absl::StatusOr<Expr> ExpressionBuilder::Junction(Op op, std::vector<Expr> operands, int position) const {
  const bool decides = op == Op::kOr;
  std::vector<Expr> kept;
  std::optional<Expr> decided;
  for (Expr& operand : operands) {
    if (IsBoolLiteral(operand, !decides)) continue;
    if (IsBoolLiteral(operand, decides)) {
      if (!decided) decided = MakeLiteral(Value::Bool(decides), operand.position);
    } else if (operand.op == op) {
      std::move(operand.children.begin(), operand.children.end(), std::back_inserter(kept));
    } else {
      kept.push_back(std::move(operand));
    }
  }
  if (decided) {
    // Conditions that connect tables stay beside a false one, so that FROM is no cartesian product.
    const auto connects = [&](const Expr& e) { return op == Op::kAnd && EquatesTables(e); };
    kept.erase(std::remove_if(kept.begin(), kept.end(), std::not_fn(connects)), kept.end());
    kept.push_back(*std::move(decided));
  }
  if (kept.empty()) return MakeLiteral(Value::Bool(!decides), position);
  if (kept.size() == 1) return std::move(kept[0]);
  return Fold(MakeNode(op, Type::Bool(), position, std::move(kept)));
}

absl::StatusOr<Expr> ExpressionBuilder::Not(Expr a, int position) const {
  return Fold(MakeNode(Op::kNot, Type::Bool(), position, {std::move(a)}));
}

absl::StatusOr<Expr> ExpressionBuilder::IsNull(Expr a, int position) const {
  ResolveAsString(a);
  return Fold(MakeNode(Op::kIsNull, Type::Bool(), position, {std::move(a)}));
}

absl::StatusOr<Expr> ExpressionBuilder::In(Expr a, std::vector<Expr> items, int position) {
  if (IsUntyped(a)) {
    const auto typed = std::find_if_not(items.begin(), items.end(), IsUntyped);
    NAM_RETURN_IF_ERROR(ResolveType(a, typed == items.end() ? Type::String() : typed->type));
  }
  // As in PostgreSQL, several constants beside a real become reals, unless one is wider.
  const auto wide = [](const Expr& item) { return IsConstant(item) && item.type.kind == TypeKind::kDouble; };
  if (a.type.kind == TypeKind::kReal && std::count_if(items.begin(), items.end(), plan::IsConstant) > 1 &&
      std::none_of(items.begin(), items.end(), wide)) {
    for (Expr& item : items) {
      const int at = item.position;
      if (IsLiteral(item) && IsNumber(item.type)) {
        NAM_ASSIGN_OR_RETURN(item, Cast(std::move(item), Type::Real(), at));
      }
    }
  }
  for (Expr& item : items) {
    NAM_RETURN_IF_ERROR(MeetUnzoned(item, a));
    if (!IsMidnight(item) || IsLiteral(a)) NAM_RETURN_IF_ERROR(Meet(a, item));
  }
  // Constants that a's type can hold become one kIn; the rest (columns, NULL, 1.5 for an integer, text whose
  // blanks count for a char(n)) are comparisons beside it.
  std::vector<Expr> list, rest;
  std::set<std::pair<__int128, std::string>> seen;
  const Type type = a.type;
  for (Expr& item : items) {
    NAM_RETURN_IF_ERROR(ResolveType(item, type));
    NAM_RETURN_IF_ERROR(Meet(item, a));
    if (!Comparable(type, item.type) && !(type.exact() && item.type.exact()))
      return NoOperator(Op::kEqual, a, item, item.position);
    const bool constant = IsLiteral(item) && !item.literal.null && (IsChar(item.type) || !IsChar(type));
    std::optional<__int128> held = item.literal.number;
    if (constant && type.numeric()) {
      const int own = item.literal.type.scale;
      held = Rescale(item.literal.number, own, type.scale);
      if (held.has_value() && own > type.scale && Rescale(*held, type.scale, own) != item.literal.number)
        held.reset();
      const bool longer = held.has_value() && !FitsInteger(*held, sizeof(int64_t));
      if (type.kind == TypeKind::kInteger && longer) held.reset();  // no integer constant, as in Fold
    }
    if (constant && held.has_value()) {
      if (type.numeric()) item.type = item.literal.type = type;
      item.literal.number = *held;
      if (seen.emplace(*held, item.literal.text).second) list.push_back(std::move(item));
    } else {
      NAM_ASSIGN_OR_RETURN(Expr copy, Duplicate(a));
      NAM_ASSIGN_OR_RETURN(Expr equal, Compare(Op::kEqual, std::move(copy), std::move(item), position));
      rest.push_back(std::move(equal));
    }
  }
  if (list.size() == 1) {
    NAM_ASSIGN_OR_RETURN(Expr equal, Compare(Op::kEqual, std::move(a), std::move(list[0]), position));
    rest.insert(rest.begin(), std::move(equal));
  } else if (!list.empty()) {
    list.insert(list.begin(), std::move(a));
    NAM_ASSIGN_OR_RETURN(Expr in, Fold(MakeNode(Op::kIn, Type::Bool(), position, std::move(list))));
    rest.insert(rest.begin(), std::move(in));
  }
  return Junction(Op::kOr, std::move(rest), position);
}

absl::StatusOr<Expr> ExpressionBuilder::Like(Expr a, Expr pattern, int position) const {
  NAM_RETURN_IF_ERROR(ResolveType(a, Type::String()));
  NAM_RETURN_IF_ERROR(ResolveType(pattern, Type::String()));
  if (a.type.kind != TypeKind::kString || pattern.type.kind != TypeKind::kString) {
    return UserError(sqlstate::kNoSuchOperator,
                     absl::StrCat("operator does not exist: ", KindName(a), " LIKE ", KindName(pattern)),
                     position, "LIKE compares strings; CAST(x AS text) makes one");
  }
  if (!IsLiteral(pattern)) {
    std::vector<Expr> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(pattern));
    return Call("like", std::move(operands), position);
  }
  if (IsChar(a.type) && a.type.length == 0) {
    return Refusal("LIKE on char(n) together with strings of other types is not supported", position,
                   "LIKE sees the blanks at the end of a char(n); CAST each part to text, which has none");
  }
  if (pattern.literal.null) return MakeLiteral(Value::Null(Type::Bool()), position);
  const std::string& text = pattern.literal.text;
  const size_t plain = text.find_last_not_of('\\');
  const size_t backslashes = text.size() - (plain == std::string::npos ? 0 : plain + 1);
  if (backslashes % 2 == 1) {
    return UserError(sqlstate::kBadEscape, "LIKE pattern must not end with the escape character",
                     pattern.position, "write \\\\ for a backslash");
  }
  Expr like = MakeNode(Op::kLike, Type::Bool(), position, {std::move(a)});
  like.literal = std::move(pattern.literal);
  return Fold(std::move(like));
}

absl::Status ExpressionBuilder::Unify(const std::vector<Expr*>& values, const char* place,
                                      Scales scales) const {
  const bool own_scales = scales == Scales::kOwn;
  Type common;
  const Expr* first = nullptr;  // with a type
  for (const Expr* value : values) {
    if (value->type.kind == TypeKind::kNull) continue;
    if (first == nullptr) {
      first = value;
      common = value->type;
    } else if (RankOfTime(common) > 0 && RankOfTime(value->type) > 0) {
      if (RankOfTime(value->type) > RankOfTime(common)) common = value->type;
    } else if (IsNumber(common) && IsNumber(value->type) && (common.real() || value->type.real())) {
      const bool wide = common.kind == TypeKind::kDouble || value->type.kind == TypeKind::kDouble;
      common = wide ? Type::Double() : Type::Real();
    } else if (common.exact() && value->type.exact() && (IsOwnScale(common) || IsOwnScale(value->type))) {
      common = Type::Numeric();
    } else if (!Comparable(common, value->type)) {
      return UserError(
          sqlstate::kTypeMismatch,
          absl::StrCat(place, " types ", ShownType(*first), " and ", ShownType(*value), " do not match"),
          value->position, "convert one with CAST");
    } else if (own_scales && value->type.numeric() && value->type.scale != common.scale) {
      common = Type::Numeric();
    } else if (value->type.numeric() &&
               (common.kind == TypeKind::kInteger || value->type.scale > common.scale)) {
      common = value->type.kind == TypeKind::kDecimal ? value->type : common;
    } else if (common.kind == TypeKind::kString && !(common == value->type)) {
      common = IsChar(common) && IsChar(value->type) ? CharType(0) : Type::String();
    }
  }
  if (common.kind == TypeKind::kNull) common = Type::String();
  for (Expr* value : values) {
    if (IsUntyped(*value)) {
      NAM_RETURN_IF_ERROR(ResolveType(*value, common));
      // A quoted number may have more decimals than the others.
      const bool more = own_scales && common.kind != TypeKind::kNumeric ? value->type.scale != common.scale
                                                                        : value->type.scale > common.scale;
      if (value->type.numeric() && more) return Unify(values, place, scales);
      const bool as_first = first != nullptr && first->type.kind == TypeKind::kString && !IsChar(first->type);
      if (as_first) value->declared = {DeclaredType(*first).oid};
    }
  }
  for (Expr* value : values) {
    const int position = value->position;
    if (IsNullLiteral(*value)) {
      const SqlType declared = value->declared;
      *value = MakeLiteral(Value::Null(common), position);
      value->declared = declared;
    } else if (!(value->type == common) && value->type.kind != TypeKind::kString) {
      NAM_ASSIGN_OR_RETURN(*value, Cast(std::move(*value), common, position));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Expr> ExpressionBuilder::Case(std::vector<Expr> parts, int position, bool by_else) const {
  std::vector<Expr*> results;
  for (size_t i = 1; i < parts.size(); i += 2) results.push_back(&parts[i]);
  results.insert(by_else ? results.begin() : results.end(), &parts.back());
  NAM_RETURN_IF_ERROR(Unify(results, "CASE"));
  Type type = results[0]->type;
  if (type.kind == TypeKind::kString) {
    const auto other = [&](const Expr* result) { return !(result->type == type); };
    const auto padded = [](const Expr* result) { return IsChar(result->type); };
    if (std::any_of(results.begin(), results.end(), other)) {
      type = std::all_of(results.begin(), results.end(), padded) ? CharType(0) : Type::String();
    }
  }
  const SqlType declared = CommonDeclaredType(std::vector<const Expr*>(results.begin(), results.end()));
  Expr choice = MakeNode(Op::kCase, type, position, std::move(parts));
  choice.declared = declared;
  return Fold(std::move(choice));
}

absl::StatusOr<Expr> ExpressionBuilder::Extract(Op op, Expr date, int position) const {
  NAM_RETURN_IF_ERROR(ResolveType(date, Type::Date()));
  if (date.type.kind == TypeKind::kTimestamp) {
    NAM_ASSIGN_OR_RETURN(date, Cast(std::move(date), Type::Date(), position));
  }
  if (date.type.kind != TypeKind::kDate) {
    return UserError(sqlstate::kNoSuchOperator, absl::StrCat("EXTRACT needs a date, not ", KindName(date)),
                     position, "CAST(x AS date) makes one of a string");
  }
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): ResolveType moves it only to assign it anew.
  Expr field = MakeNode(op, Type::Integer(), position, {std::move(date)});
  field.declared = SqlType::Numeric();
  return Fold(std::move(field));
}

absl::StatusOr<Expr> ExpressionBuilder::Duplicate(const Expr& expr) {
  duplicated_nodes_ += CountNodes(expr);
  if (duplicated_nodes_ > kMostDuplicatedNodes) {
    return UserError(sqlstate::kTooComplex, "the statement is too complex", expr.position,
                     "nest fewer COALESCE, NULLIF, BETWEEN and CASE");
  }
  return expr;
}

}  // namespace nam::sql
