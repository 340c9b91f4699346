#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/expression.h"
#include "plan/expression_tree.h"
#include "types/date.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

absl::StatusOr<Value> Number(const Expr& e, std::optional<__int128> n) {
  if (!n.has_value()) return NumberOutOfRange(e.position);
  return Value{e.type, false, *n, {}};
}

absl::StatusOr<Value> DateArithmetic(const Expr& e, const Value& a, const Value& b) {
  if (b.type.kind == TypeKind::kDate) return Value::Integer(a.number - b.number);
  // Integers of up to 38 digits and their sums with a day stay inside 128 bits.
  const __int128 day = e.op == Op::kAdd ? a.number + b.number : a.number - b.number;
  if (day < kLeastDay || day > kGreatestDay) return DateOutOfRange(e.position);
  return Value::Date(static_cast<int64_t>(day));
}

absl::StatusOr<Value> Arithmetic(const Expr& e, const Value& a, const Value& b) {
  if (a.null || b.null) return Value::Null(e.type);
  if (a.type.kind == TypeKind::kDate) return DateArithmetic(e, a, b);
  const int sa = a.type.scale, sb = b.type.scale;
  if ((e.op == Op::kDivide || e.op == Op::kModulo) && b.number == 0) {
    return UserError(sqlstate::kDivisionByZero, "division by zero", e.position,
                     "NULLIF(x, 0) as the divisor gives NULL instead");
  }
  switch (e.op) {
    case Op::kAdd:
      return Number(e, AddDecimals(a.number, sa, b.number, sb));
    case Op::kSubtract:
      return Number(e, AddDecimals(a.number, sa, -b.number, sb));
    case Op::kMultiply:
      return Number(e, MultiplyDecimals(a.number, b.number));
    case Op::kModulo:
      return Number(e, a.number % b.number);
    default:
      break;
  }
  if (e.type.kind == TypeKind::kInteger) return Number(e, a.number / b.number);
  return Number(e, DivideDecimals(a.number, sa, b.number, sb, e.type.scale));
}

/// The order of the operands' values, neither of them NULL.
int CompareOperands(const Expr& e, const Value& a, const Value& b) {
  if (a.type.kind != TypeKind::kString || !IgnoresBlanks(e.children[0].type, e.children[1].type))
    return Compare(a, b);
  return WithoutBlanks(a.text).compare(WithoutBlanks(b.text));
}

/// LIKE sees a char(n) with its blanks.
std::string Padded(std::string text, const Type& type) {
  const size_t characters = CountCharacters(text);
  if (characters < type.length) text.append(type.length - characters, ' ');
  return text;
}

bool Holds(Op op, int order) {
  switch (op) {
    case Op::kEqual:
      return order == 0;
    case Op::kNotEqual:
      return order != 0;
    case Op::kLess:
      return order < 0;
    case Op::kLessEqual:
      return order <= 0;
    case Op::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

absl::StatusOr<Value> TextToNumber(const Expr& e, const Value& from) {
  const auto bad = [&] {
    return UserError(sqlstate::kBadText, "invalid " + TypeName(e.type) + ": " + Quote(from.text), e.position);
  };
  const absl::StatusOr<Value> number = ParseNumeric(from.text);
  if (!number.ok()) return absl::IsOutOfRange(number.status()) ? NumberOutOfRange(e.position) : bad();
  if (e.type.kind == TypeKind::kInteger && number->type.kind != TypeKind::kInteger) return bad();
  return *number;
}

absl::StatusOr<Value> TextToBool(const Expr& e, const Value& from) {
  const std::string text = absl::AsciiStrToLower(std::string(TrimBlanks(from.text)));
  if (text == "1" || text == "on") return Value::Bool(true);
  if (text == "0" || text == "of" || text == "off") return Value::Bool(false);
  // Of these a part of the word will do.
  for (const auto& [word, value] : {std::pair("true", true), {"yes", true}, {"false", false}, {"no", false}})
    if (!text.empty() && absl::StartsWith(word, text)) return Value::Bool(value);
  return UserError(sqlstate::kBadText, "invalid boolean: " + Quote(from.text), e.position,
                   "write true or false");
}

absl::StatusOr<Value> TextToDate(const Expr& e, const Value& from) {
  const absl::StatusOr<int64_t> days = ParseDate(from.text);
  if (days.ok()) return Value::Date(*days);
  if (absl::IsOutOfRange(days.status())) {
    return UserError(sqlstate::kDateOutOfRange, "there is no such date: " + Quote(from.text), e.position,
                     "dates go from 0001-01-01 to 9999-12-31");
  }
  return UserError(sqlstate::kBadDate, "invalid date: " + Quote(from.text), e.position,
                   "dates are written YYYY-MM-DD");
}

absl::StatusOr<Value> TextToTimestamp(const Expr& e, const Value& from) {
  const absl::StatusOr<int64_t> us = ParseTimestamp(from.text);
  if (us.ok()) return Value::Timestamp(*us);
  if (absl::IsOutOfRange(us.status())) {
    return UserError(sqlstate::kDateOutOfRange, "there is no such timestamp: " + Quote(from.text), e.position,
                     "timestamps go from 0001-01-01 to 9999-12-31 23:59:59.999999");
  }
  return UserError(sqlstate::kBadDate, "invalid timestamp: " + Quote(from.text), e.position,
                   "timestamps are written YYYY-MM-DD HH:MM:SS.ffffff");
}

int64_t DayOf(int64_t us) {
  return us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
}

/// Rounds half away from zero where the new type has fewer decimals, as PostgreSQL does.
absl::StatusOr<Value> Cast(const Expr& e, Value from) {
  if (from.null) return Value::Null(e.type);
  switch (e.type.kind) {
    case TypeKind::kString: {
      const bool truth = from.type.kind == TypeKind::kBool;
      Value text = Value::String(!truth ? from.ToString() : from.number != 0 ? "true" : "false");
      text.type = e.type;
      return text;
    }
    case TypeKind::kDate:
      if (from.type.kind == TypeKind::kString) return TextToDate(e, from);
      if (from.type.kind == TypeKind::kTimestamp)
        return Value::Date(DayOf(static_cast<int64_t>(from.number)));
      return from;
    case TypeKind::kTimestamp:
      if (from.type.kind == TypeKind::kString) return TextToTimestamp(e, from);
      if (from.type.kind == TypeKind::kDate)
        return Value::Timestamp(static_cast<int64_t>(from.number) * kMicrosecondsPerDay);
      return from;
    case TypeKind::kBool:
      if (from.type.kind == TypeKind::kString) return TextToBool(e, from);
      return from;
    default:
      break;
  }
  if (from.type.kind == TypeKind::kString) {
    NAM_ASSIGN_OR_RETURN(from, TextToNumber(e, from));
  }
  const std::optional<__int128> n = Rescale(from.number, from.type.scale, e.type.scale);
  if (e.type.kind == TypeKind::kInteger && n.has_value() && !FitsInteger(*n, IntegerBytes(e)))
    return IntegerOutOfRange(IntegerBytes(e), e.position);
  return Number(e, n);
}

class Evaluator {
 public:
  explicit Evaluator(const Resolver& resolve) : resolve_(resolve) {}

  absl::StatusOr<Value> Eval(const Expr& e) const {
    switch (e.op) {
      case Op::kColumn:
      case Op::kGroup:
      case Op::kAggregate:
        return resolve_(e);
      case Op::kLiteral:
        return e.literal;
      case Op::kAnd:
        return Junction(e, false);
      case Op::kOr:
        return Junction(e, true);
      case Op::kIn:
        return In(e);
      case Op::kCase:
        return Case(e);
      default:
        break;
    }
    NAM_ASSIGN_OR_RETURN(Value a, Eval(e.children[0]));
    if (e.children.size() == 1) return Unary(e, std::move(a));
    NAM_ASSIGN_OR_RETURN(const Value b, Eval(e.children[1]));
    if (e.op >= Op::kEqual && e.op <= Op::kGreaterEqual) {
      if (a.null || b.null) return Value::Null(Type::Bool());
      return Value::Bool(Holds(e.op, CompareOperands(e, a, b)));
    }
    return Arithmetic(e, a, b);
  }

 private:
  absl::StatusOr<Value> Unary(const Expr& e, Value a) const {
    if (e.op == Op::kIsNull) return Value::Bool(a.null);
    if (a.null) return Value::Null(e.type);
    switch (e.op) {
      case Op::kNot:
        return Value::Bool(a.number == 0);
      case Op::kNegate:
        return Value{e.type, false, -a.number, {}};
      case Op::kCast:
        return Cast(e, std::move(a));
      case Op::kLike:
        if (IsChar(e.children[0].type)) a.text = Padded(std::move(a.text), e.children[0].type);
        return Value::Bool(MatchesLike(a.text, e.literal.text));
      case Op::kExtractYear:
        return Value::Integer(CivilFromDays(static_cast<int64_t>(a.number)).year);
      case Op::kExtractMonth:
        return Value::Integer(CivilFromDays(static_cast<int64_t>(a.number)).month);
      case Op::kExtractDay:
        return Value::Integer(CivilFromDays(static_cast<int64_t>(a.number)).day);
      default:
        NAM_CHECK(false, "not an operator of one operand");
    }
    return a;
  }

  /// AND stops at the first false, OR at the first true; what comes behind is not evaluated.
  absl::StatusOr<Value> Junction(const Expr& e, bool stop) const {
    bool unknown = false;
    for (const Expr& child : e.children) {
      NAM_ASSIGN_OR_RETURN(const Value value, Eval(child));
      if (value.null) {
        unknown = true;
      } else if ((value.number != 0) == stop) {
        return Value::Bool(stop);
      }
    }
    return unknown ? Value::Null(Type::Bool()) : Value::Bool(!stop);
  }

  absl::StatusOr<Value> In(const Expr& e) const {
    NAM_ASSIGN_OR_RETURN(const Value a, Eval(e.children[0]));
    if (a.null) return Value::Null(Type::Bool());
    bool unknown = false;
    for (size_t i = 1; i < e.children.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(const Value item, Eval(e.children[i]));
      if (item.null) {
        unknown = true;
      } else if (Compare(a, item) == 0) {
        return Value::Bool(true);
      }
    }
    return unknown ? Value::Null(Type::Bool()) : Value::Bool(false);
  }

  absl::StatusOr<Value> Case(const Expr& e) const {
    for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
      NAM_ASSIGN_OR_RETURN(const Value when, Eval(e.children[i]));
      if (!when.null && when.number != 0) return Eval(e.children[i + 1]);
    }
    return Eval(e.children.back());
  }

  const Resolver& resolve_;
};

}  // namespace

absl::StatusOr<Value> Evaluate(const Expr& expr, const Resolver& resolve) {
  return Evaluator(resolve).Eval(expr);
}

bool MatchesLike(std::string_view text, std::string_view pattern) {
  constexpr size_t kNone = std::string_view::npos;
  size_t t = 0, p = 0;
  size_t retry_pattern = kNone, retry_text = 0;  // behind the last %, and where its run ends so far
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      retry_pattern = ++p;
      retry_text = t;
      continue;
    }
    if (p < pattern.size() && t < text.size()) {
      // A lone backslash at the end stands for itself.
      const bool escaped = pattern[p] == '\\' && p + 1 < pattern.size();
      const size_t at = escaped ? p + 1 : p;
      const bool any = !escaped && pattern[at] == '_';
      if (any || pattern[at] == text[t]) {
        p = at + 1;
        t += any ? CharacterBytes(text, t) : 1;
        continue;
      }
    }
    // Let the last % take one character more; an earlier one cannot do better.
    if (retry_pattern == kNone || retry_text >= text.size()) return false;
    p = retry_pattern;
    t = retry_text += CharacterBytes(text, retry_text);
  }
  return true;
}

}  // namespace nam::plan
