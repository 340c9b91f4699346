#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/cast.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/expression_builder.h"
#include "types/characters.h"
#include "types/date_text.h"
#include "types/decimal.h"
#include "types/sql_error.h"
#include "types/time_zone.h"

/// Types of expressions: literals get the one that their context asks for, and CAST converts.
namespace nam::sql {

using plan::CharType;
using plan::Expr;
using plan::IsChar;
using plan::MakeLiteral;
using plan::Op;
using plan::Resolver;
using plan::WithoutBlanks;

std::string KindName(const Expr& expr) {
  switch (expr.type.kind) {
    case TypeKind::kString:
      return "string";
    case TypeKind::kNull:
      return "unknown";
    default:
      return ShownType(expr);
  }
}

int RankOfTime(const Type& type) {
  return type.kind == TypeKind::kDate          ? 1
         : type.kind == TypeKind::kTimestamp   ? 2
         : type.kind == TypeKind::kTimestampTz ? 3
                                               : 0;
}

Expr ExpressionBuilder::UntypedString(std::string text, int position) {
  Expr expr = MakeLiteral(Value::Null(), position);
  expr.literal.null = false;
  expr.literal.text = std::move(text);
  return expr;
}

Expr ExpressionBuilder::UntypedNull(int position) {
  return MakeLiteral(Value::Null(), position);
}

absl::Status ExpressionBuilder::ResolveType(Expr& expr, const Type& type) const {
  if (!IsUntyped(expr) || type.kind == TypeKind::kNull) return absl::OkStatus();
  if (expr.literal.null) {
    if (expr.index > 0 && parameters_ != nullptr && !parameters_->ResolveType(expr.index, type)) {
      return UserError(sqlstate::kAmbiguousParameter,
                       absl::StrCat("inconsistent types deduced for parameter $", expr.index), expr.position,
                       "name its type: PREPARE name (types) AS …");
    }
    expr = MakeLiteral(Value::Null(type), expr.position);
    return absl::OkStatus();
  }
  if (type.kind == TypeKind::kString) {
    ResolveAsString(expr);
    if (IsChar(type)) {
      expr.type = expr.literal.type = CharType(0);
      expr.literal.text.resize(WithoutBlanks(expr.literal.text).size());
    }
    return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(ResolveText(expr, type));
  const bool timed = RankOfTime(type) > 0 || type.kind == TypeKind::kTime;
  if (timed && fixed_times_ != nullptr) (*fixed_times_)[expr.position] = expr.literal.ToString();
  return absl::OkStatus();
}

absl::Status ExpressionBuilder::ResolveText(Expr& expr, const Type& type) const {
  Expr text = std::move(expr);
  ResolveAsString(text);
  ResolveDay(text, type);
  Type target = type;
  if (type.kind == TypeKind::kDecimal) {
    // Its own decimals, not the other side's: `price = '1.005'` must not round.
    target = Type::Decimal(ScaleOfText(text.literal.text));
  }
  const int position = text.position;
  if (type.kind == TypeKind::kTimestampTz) {
    NAM_ASSIGN_OR_RETURN(text, CastZoned(std::move(text), type, position));
    NAM_ASSIGN_OR_RETURN(Value zoned, Evaluate(text, Resolver()));
    expr = MakeLiteral(std::move(zoned), position);
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(Value value,
                       Evaluate(MakeNode(Op::kCast, target, position, {std::move(text)}), Resolver()));
  expr = MakeLiteral(std::move(value), position);
  return absl::OkStatus();
}

void ExpressionBuilder::ResolveDay(Expr& text, const Type& type) const {
  const bool time = type.kind == TypeKind::kTime;
  if ((RankOfTime(type) == 0 && !time) || !now_us_) return;
  const TimeZone* const zone = TimeZone::OfThread(zone_);
  std::string at = DateTextAt(text.literal.text, zone == nullptr ? *now_us_ : zone->LocalOf(*now_us_));
  const bool now = absl::AsciiStrToLower(std::string(TrimBlanks(text.literal.text))) == "now";
  if ((!now && time) || at == text.literal.text) return;
  text.literal.text = std::move(at);
  if (depends_on_time_ != nullptr) *depends_on_time_ = true;
}

void ExpressionBuilder::ResolveAsString(Expr& expr) {
  if (!IsUntyped(expr)) return;
  expr.type = expr.literal.type = Type::String();
}

absl::StatusOr<Expr> ExpressionBuilder::Cast(Expr a, const Type& type, int position, int width) const {
  Type written = type;
  const bool sized = type.kind == TypeKind::kInteger || (type.kind == TypeKind::kDecimal && width > 0);
  if (sized) written.precision = static_cast<uint8_t>(width > 0 ? width : sizeof(int64_t));
  return Cast(std::move(a), type, position, width, SqlTypeOf(written));
}

absl::StatusOr<Expr> ExpressionBuilder::Cast(Expr a, const Type& type, int position, int width,
                                             SqlType declared) const {
  NAM_ASSIGN_OR_RETURN(Expr cast, Converted(std::move(a), type, position, width));
  cast.declared = declared;
  return cast;
}

absl::StatusOr<Expr> ExpressionBuilder::Converted(Expr a, const Type& type, int position, int width) const {
  if (IsUntyped(a)) {
    if (a.literal.null) {
      if (a.index > 0 && parameters_ != nullptr) parameters_->ResolveType(a.index, type);
      return MakeLiteral(Value::Null(type), position);
    }
    position = a.position;
    // As in PostgreSQL, a literal is parsed when it is bound, even if it is never evaluated.
    if (type.kind != TypeKind::kString) NAM_RETURN_IF_ERROR(ResolveType(a, type));
    ResolveAsString(a);
  }
  // Columns hold at most 64 bits; computed integers may be wider.
  const bool integer = type.kind == TypeKind::kInteger;
  const bool checked = width > 0 && !(integer && width == 8 && a.op == Op::kColumn);
  const bool cut = type.kind == TypeKind::kString && type.length > 0 && type.length != Type::kAnyLength;
  if (a.type == type && !checked && !cut) return a;
  const bool zoned = a.type.kind == TypeKind::kTimestampTz || type.kind == TypeKind::kTimestampTz;
  const auto has_zoned = [](const Type& t) {
    return RankOfTime(t) > 0 || t.kind == TypeKind::kTime || t.kind == TypeKind::kString;
  };
  const bool zoned_exists = zoned && has_zoned(a.type) && has_zoned(type) && a.type.kind != TypeKind::kTime;
  if (zoned_exists && !cut && a.type.kind != type.kind) return CastZoned(std::move(a), type, position);
  // A boolean is cast to integer only, to no other integer type.
  const bool odd = a.type.kind == TypeKind::kBool && integer && width > 0 && width != 4;
  if (odd || (!zoned_exists && !plan::CastExists(a.type, type))) {
    const std::string target = width == 2 ? "smallint" : width == 8 ? "bigint" : TypeName(type);
    return UserError(
        sqlstate::kCannotCast,
        absl::StrCat("cannot cast ", KindName(a), " to ", integer ? target : TypeName(type)), position,
        "casts go between numbers, between date, time and timestamp, and between string and any type");
  }
  if (cut) return CutText(std::move(a), type, position);
  // The length of a column's type is not part of its strings. But blanks at the end count in text, not in
  // varchar, beside char(n).
  const auto sized = [](const Type& t) { return t.length > 0; };
  if (a.type.kind == TypeKind::kString && type.kind == TypeKind::kString && !IsChar(a.type) &&
      (IsChar(type) || sized(a.type) == sized(type)))
    return a;
  // A whole number that has become a decimal on the way is packed as it was.
  const bool packs = type.kind == TypeKind::kNumeric && a.op == Op::kCast && a.type == Type::Decimal(0) &&
                     a.index < 0 && a.children[0].type.kind == TypeKind::kInteger;
  if (packs) a = Expr(std::move(a.children[0]));
  Expr cast = MakeNode(Op::kCast, type, position, {std::move(a)});
  cast.index = width;
  return Fold(std::move(cast));
}

/// varchar(n) and char(n): an explicit cast cuts longer strings.
absl::StatusOr<Expr> ExpressionBuilder::CutText(Expr a, const Type& type, int position) const {
  const bool fits = IsChar(a.type) && IsChar(type) && a.type.length > 0 && a.type.length <= type.length;
  if (!fits && (a.type.kind != TypeKind::kString || IsChar(a.type))) {
    NAM_ASSIGN_OR_RETURN(a, Cast(std::move(a), Type::String(), position));
  }
  if (!fits) {
    std::vector<Expr> operands;
    operands.push_back(std::move(a));
    operands.push_back(MakeLiteral(Value::Integer(type.length), position));
    NAM_ASSIGN_OR_RETURN(a, FunctionNode(plan::Function::kLeft, std::move(operands), position));
  }
  const Type target = IsChar(type) ? type : Type::String(Type::kAnyLength);
  return Fold(MakeNode(Op::kCast, target, position, {std::move(a)}));
}

}  // namespace nam::sql
