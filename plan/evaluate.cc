#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/cast.h"
#include "plan/expression.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "plan/numeric_arithmetic.h"
#include "plan/real_arithmetic.h"
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
  // Integers of up to 38 digits and their sums with a day fit 128 bits.
  const __int128 day = e.op == Op::kAdd ? a.number + b.number : a.number - b.number;
  if (day < kLeastDay || day > kGreatestDay) return DateOutOfRange(e.position);
  return Value::Date(static_cast<int64_t>(day));
}

absl::StatusOr<Value> RealArithmetic(const Expr& e, const Value& a, const Value& b) {
  const bool narrow = e.type.kind == TypeKind::kReal;
  const double x = a.real(), y = b.real(), z = RealResult(e.op, x, y, narrow);
  if (const RealFault fault = FaultOf(e.op, x, y, z); fault != RealFault::kNone)
    return ErrorOf(fault, e.position);
  return narrow ? Value::Real(z) : Value::Double(z);
}

/// As it is, with more than 36 digits, too.
Numeric OperandOf(const Value& value) {
  return value.type.kind == TypeKind::kNumeric ? value.unpacked() : Numeric{value.number, value.type.scale};
}

absl::StatusOr<Value> NumericArithmetic(const Expr& e, const Numeric& a, const Numeric& b) {
  if ((e.op == Op::kDivide || e.op == Op::kModulo) && b.digits == 0) return DivisionByZero(e.position);
  const std::optional<Numeric> result = NumericResult(e.op, a, b);
  return result ? absl::StatusOr<Value>(Value::OfNumeric(*result)) : NumericOutOfRange(e.position);
}

absl::StatusOr<Value> Arithmetic(const Expr& e, const Value& a, const Value& b) {
  if (a.null || b.null) return Value::Null(e.type);
  if (a.type.kind == TypeKind::kDate) return DateArithmetic(e, a, b);
  if (e.type.real()) return RealArithmetic(e, a, b);
  if (e.type.kind == TypeKind::kNumeric) return NumericArithmetic(e, OperandOf(a), OperandOf(b));
  const int sa = a.type.scale, sb = b.type.scale;
  if ((e.op == Op::kDivide || e.op == Op::kModulo) && b.number == 0) return DivisionByZero(e.position);
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
      return Number(e, a.number / b.number);
  }
}

/// The order of the operands' values, neither of them NULL.
int CompareOperands(const Expr& e, const Value& a, const Value& b) {
  if (a.type.kind != TypeKind::kString || !IgnoresBlanks(e.children[0].type, e.children[1].type))
    return Compare(a, b);
  return WithoutBlanks(a.text).compare(WithoutBlanks(b.text));
}

/// LIKE sees the blanks of a char(n).
std::string PaddedToType(std::string text, const Type& type) {
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

class Evaluator {
 public:
  explicit Evaluator(const Resolver& resolve) : resolve_(resolve) {}

  absl::StatusOr<Value> Eval(const Expr& e) const {
    switch (e.op) {
      case Op::kColumn:
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
      case Op::kFunction:
        return Call(e);
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
        if (e.type.kind == TypeKind::kNumeric) return Value::OfNumeric(NegateNumeric(a.unpacked()));
        return e.type.real() ? Value{e.type, false, OrderedBits(-a.real()), {}}
                             : Value{e.type, false, -a.number, {}};
      case Op::kCast:
        return Cast(e, std::move(a));
      case Op::kLike:
        if (IsChar(e.children[0].type)) a.text = PaddedToType(std::move(a.text), e.children[0].type);
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

  /// Evaluates all operands, even after a NULL.
  absl::StatusOr<Value> Call(const Expr& e) const {
    std::vector<Value> arguments;
    arguments.reserve(e.children.size());
    bool null = false;
    for (const Expr& child : e.children) {
      NAM_ASSIGN_OR_RETURN(Value argument, Eval(child));
      // NULLs may come without a type.
      argument.type = child.type;
      null = null || argument.null;
      arguments.push_back(std::move(argument));
    }
    if (null && IsStrict(FunctionOf(e))) return Value::Null(e.type);
    return Apply(e, arguments);
  }

  /// AND stops at the first false, OR at the first true; later operands are not evaluated.
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

absl::Status ErrorOf(RealFault fault, int position) {
  if (fault == RealFault::kDivisionByZero) return DivisionByZero(position);
  const char* const what = fault == RealFault::kOverflow ? "overflow" : "underflow";
  return UserError(sqlstate::kNumberOutOfRange, std::string("value out of range: ") + what, position);
}

absl::StatusOr<Value> Evaluate(const Expr& expr, const Resolver& resolve) {
  return Evaluator(resolve).Eval(expr);
}

namespace {

/// The next place, from `at` on, where the pattern after a % may begin: at its first characters if these are
/// literal, which is searched many bytes at a time. The end of the text if there is none.
size_t NextStart(std::string_view text, size_t at, std::string_view pattern) {
  const std::string_view literal = pattern.substr(0, pattern.find_first_of("%_\\"));
  if (literal.empty() || at >= text.size()) return std::min(at, text.size());
  const void* found = memmem(text.data() + at, text.size() - at, literal.data(), literal.size());
  return found == nullptr ? text.size() : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace

bool MatchesLike(std::string_view text, std::string_view pattern) {
  constexpr size_t kNone = std::string_view::npos;
  size_t t = 0, p = 0;
  size_t retry_pattern = kNone, retry_text = 0;  // after the last %, and the end of its run so far
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      retry_pattern = ++p;
      t = retry_text = NextStart(text, t, pattern.substr(p));
      continue;
    }
    if (p < pattern.size() && t < text.size()) {
      // A lone backslash at the end is literal.
      const bool escaped = pattern[p] == '\\' && p + 1 < pattern.size();
      const size_t at = escaped ? p + 1 : p;
      const bool any = !escaped && pattern[at] == '_';
      if (any || pattern[at] == text[t]) {
        p = at + 1;
        t += any ? CharacterBytes(text, t) : 1;
        continue;
      }
    }
    // Extends the last % by one character; an earlier one cannot do better.
    if (retry_pattern == kNone || retry_text >= text.size()) return false;
    p = retry_pattern;
    t = retry_text = NextStart(text, retry_text + CharacterBytes(text, retry_text), pattern.substr(p));
  }
  return true;
}

}  // namespace nam::plan
