#include "tests/execution/expression/random_expression.h"

#include <algorithm>
#include <string_view>

#include "plan/function.h"
#include "types/decimal.h"

namespace nam::testing {
namespace {

using plan::Expr;
using plan::Op;

Expr Node(Op op, Type type, std::vector<Expr> children) {
  Expr e;
  e.op = op;
  e.type = type;
  e.children = std::move(children);
  return e;
}

Expr LiteralOf(Value value) {
  Expr e;
  e.type = value.type;
  e.literal = std::move(value);
  return e;
}

Expr ColumnOf(uint32_t slot, const Type& type) {
  Expr e;
  e.op = Op::kColumn;
  e.type = type;
  e.column = {0, static_cast<int>(slot)};
  return e;
}

Expr CastTo(Expr a, Type type, int bytes = -1) {
  Expr e = Node(Op::kCast, type, {});
  e.children.push_back(std::move(a));
  e.index = bytes;
  return e;
}

Type ScaleOf(const Expr& a, const Expr& b) {
  if (a.type.kind == TypeKind::kInteger && b.type.kind == TypeKind::kInteger) return Type::Integer();
  return Type::Decimal(std::max(a.type.scale, b.type.scale));
}

}  // namespace

Expr RandomExpression::Literal(TypeKind kind) {
  const Type type = kind == TypeKind::kDecimal ? Type::Decimal(static_cast<uint8_t>(Below(random_, 4)))
                    : kind == TypeKind::kString && Chance(random_, 20) ? plan::CharType(6)
                                                                       : Type{.kind = kind};
  if (Chance(random_, 10)) return LiteralOf(Value::Null(type));
  Value value = RandomValue(random_, type, Chance(random_, 15));
  if (plan::IsChar(type)) value.text = plan::WithoutBlanks(value.text);
  return LiteralOf(std::move(value));
}

Expr RandomExpression::Leaf(TypeKind kind) {
  if (Chance(random_, 25)) return Literal(kind);
  std::vector<uint32_t> fitting;
  for (uint32_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].slot.type.kind == kind && (only_ < 0 || only_ == static_cast<int>(s))) fitting.push_back(s);
  }
  if (fitting.empty()) return Literal(kind);
  const uint32_t slot = OneOf(random_, fitting);
  return ColumnOf(slot, slots_[slot].slot.type);
}

Expr RandomExpression::Any(int depth) {
  switch (Below(random_, 11)) {
    case 10:
      return OwnScale(depth);
    case 6:
      return Double(depth);
    case 7:
      return Interval(depth);
    case 8:
      return Call(OneOf<char>(random_, {'t', 'b', 'i', 'n', 'N', 'f', 'D', 'T', 'Z', 'C', 'I', 'B', '='}),
                  depth);
    case 9:
      return Chance(random_, 50) ? Uuid(depth) : Bytes(depth);
    case 0:
      return Bool(depth);
    case 1:
      return Text(depth);
    case 2:
      return Date(depth);
    case 3:
      return Timestamp(depth);
    default:
      return Number(depth);
  }
}

Expr RandomExpression::Case(Maker branch, int depth) {
  Expr e = Node(Op::kCase, {}, {});
  const uint64_t branches = 1 + Below(random_, 3);
  for (uint64_t i = 0; i < branches; ++i) {
    e.children.push_back(Bool(depth - 1));
    e.children.push_back((this->*branch)(depth - 1));
  }
  if (Chance(random_, 40)) {  // COALESCE(x, …)
    Expr x = e.children[1];
    e.children[0] = Node(Op::kNot, Type::Bool(), {Node(Op::kIsNull, Type::Bool(), {std::move(x)})});
  }
  e.children.push_back((this->*branch)(depth - 1));
  e.type = e.children[1].type;
  for (size_t i = 1; i < e.children.size(); i += i + 2 == e.children.size() ? 1 : 2) {
    const Type& type = e.children[i].type;
    if (type.numeric()) e.type = type == e.type ? type : Type::Decimal(std::max(type.scale, e.type.scale));
    if (type.kind == TypeKind::kString && type != e.type) e.type = Type::String();
  }
  for (size_t i = 1; i < e.children.size(); i += i + 2 == e.children.size() ? 1 : 2) {
    Expr& then = e.children[i];
    if (then.type.numeric() && then.type != e.type) then = CastTo(std::move(then), e.type);
  }
  if (Chance(random_, 20))
    e.children.back() = LiteralOf(Value::Null(Chance(random_, 50) ? Type::Null() : e.type));
  return e;
}

Expr RandomExpression::Arithmetic(int depth) {
  const Op op = OneOf<Op>(random_, {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide, Op::kModulo});
  Expr a = Number(depth - 1), b = Number(depth - 1);
  const bool integers = a.type.kind == TypeKind::kInteger && b.type.kind == TypeKind::kInteger;
  Type type = ScaleOf(a, b);
  if ((op == Op::kModulo || op == Op::kDivide) && !integers) return CastTo(std::move(a), type);
  if (op == Op::kMultiply && !integers) {
    if (a.type.scale + b.type.scale > kMaxDecimalDigits) return a;
    type = Type::Decimal(static_cast<uint8_t>(a.type.scale + b.type.scale));
  }
  Expr e = Node(op, type, {});
  e.children.push_back(std::move(a));
  e.children.push_back(std::move(b));
  e.position = static_cast<int>(Below(random_, 1000));
  return e;
}

Expr RandomExpression::Integer(int depth) {
  Expr a = Number(depth);
  return a.type.kind == TypeKind::kInteger ? a : CastTo(std::move(a), Type::Integer(), 8);
}

Expr RandomExpression::Number(int depth) {
  if (depth <= 0) return Leaf(Chance(random_, 50) ? TypeKind::kInteger : TypeKind::kDecimal);
  if (Chance(random_, 5)) return CastTo(Double(depth - 1), Type::Integer(), 8);
  if (Chance(random_, 5))
    return CastTo(OwnScale(depth - 1), Type::Integer(), OneOf<int>(random_, {-1, 2, 4}));
  if (Chance(random_, 5))
    return CastTo(OwnScale(depth - 1), Type::Decimal(static_cast<uint8_t>(Below(random_, 20))));
  if (Chance(random_, 10)) return Call(Chance(random_, 50) ? 'i' : 'n', depth);
  switch (Below(random_, 12)) {
    case 0:
      return Leaf(TypeKind::kInteger);
    case 1: {
      Expr a = Number(depth - 1);
      const Type type = a.type;
      return Node(Op::kNegate, type, {std::move(a)});
    }
    case 2:
      return Case(&RandomExpression::Number, depth);
    case 3:
      return CastTo(Number(depth - 1), Type::Integer(), OneOf<int>(random_, {-1, 2, 4, 8}));
    case 4: {
      const auto scale = static_cast<uint8_t>(Chance(random_, 80) ? Below(random_, 8) : Below(random_, 39));
      return CastTo(Number(depth - 1), Type::Decimal(scale));
    }
    case 5:
      return Node(OneOf<Op>(random_, {Op::kExtractYear, Op::kExtractMonth, Op::kExtractDay}), Type::Integer(),
                  {Date(depth - 1)});
    case 6:
      return Node(Op::kSubtract, Type::Integer(), {Date(depth - 1), Date(depth - 1)});
    case 7:
      return CastTo(Text(depth - 1), Chance(random_, 50) ? Type::Integer() : Type::Decimal(2));
    default:
      return Arithmetic(depth);
  }
}

Expr RandomExpression::Date(int depth) {
  if (depth <= 0) return Leaf(TypeKind::kDate);
  if (Chance(random_, 10)) return Call('D', depth);
  switch (Below(random_, 5)) {
    case 0:
      return Case(&RandomExpression::Date, depth);
    case 1:
      return CastTo(Chance(random_, 80) ? Timestamp(depth - 1) : Text(depth - 1), Type::Date());
    case 2:
      return Leaf(TypeKind::kDate);
    default: {
      Expr e = Node(Chance(random_, 50) ? Op::kAdd : Op::kSubtract, Type::Date(), {});
      e.children.push_back(Date(depth - 1));
      e.children.push_back(Chance(random_, 50) ? Leaf(TypeKind::kInteger) : Integer(depth - 1));
      e.position = static_cast<int>(Below(random_, 1000));
      return e;
    }
  }
}

Expr RandomExpression::Timestamp(int depth) {
  if (depth <= 0 || Chance(random_, 30)) return Leaf(TypeKind::kTimestamp);
  if (Chance(random_, 20)) return Call('T', depth);
  if (Chance(random_, 30)) return Case(&RandomExpression::Timestamp, depth);
  return CastTo(Chance(random_, 80) ? Date(depth - 1) : Text(depth - 1), Type::Timestamp());
}

Expr RandomExpression::TimestampTz(int depth) {
  if (depth <= 0 || Chance(random_, 30)) return Leaf(TypeKind::kTimestampTz);
  return Chance(random_, 20) ? Case(&RandomExpression::TimestampTz, depth) : Call('Z', depth);
}

Expr RandomExpression::Time(int depth) {
  if (depth <= 0 || Chance(random_, 30)) return Leaf(TypeKind::kTime);
  if (Chance(random_, 20)) return Case(&RandomExpression::Time, depth);
  if (Chance(random_, 40)) return Call('C', depth);
  return CastTo(Chance(random_, 50) ? Timestamp(depth - 1) : Interval(depth - 1), Type::Time());
}

Expr RandomExpression::Text(int depth) {
  if (depth <= 0 || Chance(random_, 40)) return Leaf(TypeKind::kString);
  if (Chance(random_, 30)) return Call('t', depth);
  switch (Below(random_, 4)) {
    case 0:
      return CastTo(Number(depth - 1), Type::String());
    case 1:
      return CastTo(Bool(depth - 1), Type::String());
    case 2:
      return CastTo(Date(depth - 1), Type::String(10));
    default:
      return Case(&RandomExpression::Text, depth);
  }
}

Expr RandomExpression::Comparison(int depth) {
  const Op op = OneOf<Op>(
      random_, {Op::kEqual, Op::kNotEqual, Op::kLess, Op::kLessEqual, Op::kGreater, Op::kGreaterEqual});
  const Maker of = OneOf<Maker>(
      random_, {&RandomExpression::Number, &RandomExpression::Number, &RandomExpression::Text,
                &RandomExpression::Text, &RandomExpression::Date, &RandomExpression::Timestamp,
                &RandomExpression::Bool, &RandomExpression::Double, &RandomExpression::Interval,
                &RandomExpression::Uuid, &RandomExpression::Bytes, &RandomExpression::TimestampTz,
                &RandomExpression::Time, &RandomExpression::OwnScale});
  Expr e = Node(op, Type::Bool(), {});
  e.children.push_back((this->*of)(depth - 1));
  e.children.push_back((this->*of)(depth - 1));
  return e;
}

Expr RandomExpression::In(int depth) {
  const Maker of =
      OneOf<Maker>(random_, {&RandomExpression::Number, &RandomExpression::Text, &RandomExpression::Date,
                             &RandomExpression::Bool, &RandomExpression::Double, &RandomExpression::Interval,
                             &RandomExpression::Uuid, &RandomExpression::Bytes, &RandomExpression::OwnScale});
  Expr e = Node(Op::kIn, Type::Bool(), {});
  e.children.push_back((this->*of)(depth - 1));
  const uint64_t items = 1 + Below(random_, Chance(random_, 50) ? 4 : 30);
  for (uint64_t i = 0; i < items; ++i) e.children.push_back(Literal(e.children[0].type.kind));
  return e;
}

Expr RandomExpression::Bool(int depth) {
  if (depth <= 0) return Leaf(TypeKind::kBool);
  if (Chance(random_, 10)) return Call('b', depth);
  switch (Below(random_, 10)) {
    case 0:
      return Leaf(TypeKind::kBool);
    case 1:
    case 2: {
      Expr e = Node(Chance(random_, 50) ? Op::kAnd : Op::kOr, Type::Bool(), {});
      for (uint64_t i = 0; i < 2 + Below(random_, 3); ++i) e.children.push_back(Bool(depth - 1));
      return e;
    }
    case 3:
      return Node(Op::kNot, Type::Bool(), {Bool(depth - 1)});
    case 4:
      return Node(Op::kIsNull, Type::Bool(), {Any(depth - 1)});
    case 5:
      return In(depth);
    case 6: {
      Expr e = Node(Op::kLike, Type::Bool(), {Text(depth - 1)});
      e.literal = Value::String(OneOf<std::string>(random_, {"a%", "%b", "%A%", "_b%", "ab", "%", "", "%%",
                                                             "a\\%", "x%y", "b ", "ab c%", "%1_", "A%A"}));
      return e;
    }
    case 7:
      return Case(&RandomExpression::Bool, depth);
    default:
      return Comparison(depth);
  }
}

Expr RandomExpression::Double(int depth) {
  if (depth <= 0) return Leaf(TypeKind::kDouble);
  switch (Below(random_, 7)) {
    case 0:
      return Leaf(TypeKind::kDouble);
    case 1:
      return Case(&RandomExpression::Double, depth);
    case 2:
      return CastTo(Chance(random_, 40)   ? Leaf(TypeKind::kReal)
                    : Chance(random_, 20) ? OwnScale(depth - 1)
                    : Chance(random_, 80) ? Number(depth - 1)
                                          : Text(depth - 1),
                    Type::Double());
    case 3:
      return Node(Op::kNegate, Type::Double(), {Double(depth - 1)});
    case 4:
      return Call('f', depth);
    default: {
      Expr e =
          Node(OneOf<Op>(random_, {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide}), Type::Double(), {});
      e.children.push_back(Double(depth - 1));
      e.children.push_back(Double(depth - 1));
      // The bounds are those of all 32-bit numbers.
      if (Chance(random_, 25)) {
        for (Expr& child : e.children) child = CastTo(std::move(child), Type::Real());
        e.type = Type::Real();
        return CastTo(std::move(e), Type::Double());
      }
      return e;
    }
  }
}

Expr RandomExpression::Interval(int depth) {
  if (depth <= 0 || Chance(random_, 30)) return Leaf(TypeKind::kInterval);
  return Chance(random_, 20) ? Case(&RandomExpression::Interval, depth) : Call('I', depth);
}

Expr RandomExpression::OwnScale(int depth) {
  if (depth <= 0 || Chance(random_, 20)) return Leaf(TypeKind::kNumeric);
  switch (Below(random_, 8)) {
    case 0:
      return Case(&RandomExpression::OwnScale, depth);
    case 1:
      return CastTo(Chance(random_, 60) ? Number(depth - 1) : Text(depth - 1), Type::Numeric());
    case 2:
      return CastTo(Double(depth - 1), Type::Numeric());
    case 3:
      return Node(Op::kNegate, Type::Numeric(), {OwnScale(depth - 1)});
    case 4: {  // rounded to a constant number of decimals it is a decimal
      Expr call = Call('N', depth);
      return call.type.numeric() ? CastTo(std::move(call), Type::Numeric()) : call;
    }
    default: {
      const Op op = OneOf<Op>(random_, {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide, Op::kModulo});
      Expr e = Node(op, Type::Numeric(), {});
      const bool known = op != Op::kDivide && op != Op::kModulo && Chance(random_, 50);
      for (int i = 0; i < 2; ++i)
        e.children.push_back(known && Chance(random_, 70) ? Number(depth - 1) : OwnScale(depth - 1));
      e.position = static_cast<int>(Below(random_, 1000));
      return e;
    }
  }
}

Expr RandomExpression::Uuid(int depth) {
  return depth > 0 && Chance(random_, 20) ? Case(&RandomExpression::Uuid, depth) : Leaf(TypeKind::kUuid);
}

Expr RandomExpression::Bytes(int depth) {
  if (depth <= 0 || Chance(random_, 40)) return Leaf(TypeKind::kBytes);
  if (Chance(random_, 20)) return Case(&RandomExpression::Bytes, depth);
  return Chance(random_, 20) ? CastTo(Text(depth - 1), Type::Bytes()) : Call('B', depth);
}

Expr RandomExpression::Operand(char letter, int depth) {
  switch (letter) {
    case 't':
      return Text(depth);
    case 'b':
      return Bool(depth);
    case 'i':
      return Chance(random_, 70) ? Literal(TypeKind::kInteger) : Integer(depth);
    case 'n': {
      Expr number = Number(depth);
      return number.type.kind == TypeKind::kDecimal ? number : CastTo(std::move(number), Type::Decimal(2));
    }
    case 'N':
      return OwnScale(depth);
    case 'f':
      return Double(depth);
    case 'D':
      return Date(depth);
    case 'T':
      return Timestamp(depth);
    case 'I':
      return Interval(depth);
    case 'U':
      return Uuid(depth);
    case 'B':
      return Bytes(depth);
    case 'Z':
      return TimestampTz(depth);
    case 'C':
      return Time(depth);
    default:
      return Operand(OneOf<char>(random_, {'t', 'b', 'i', 'n', 'f', 'D', 'T', 'Z', 'C', 'I', 'U', 'B'}),
                     depth);
  }
}

Expr RandomExpression::Call(char result, int depth) {
  std::vector<plan::Signature> fitting;
  for (const plan::Signature& signature : plan::Signatures()) {
    if (signature.result == result) fitting.push_back(signature);
  }
  const plan::Signature signature = OneOf(random_, fitting);
  std::string letters = signature.arguments;
  if (letters.back() == '*')
    letters = std::string(letters.size() - 1, letters[0]) + letters[letters.size() - 2];
  const char same = OneOf<char>(random_, {'t', 'i', 'f', 'N', 'D', 'T', 'Z', 'C', 'I', 'U', 'B'});
  Expr e = Node(Op::kFunction, {}, {});
  e.index = static_cast<int>(signature.function);
  e.position = static_cast<int>(Below(random_, 1000));
  for (const char letter : letters)
    e.children.push_back(Operand(letter == 'a' && result == '=' ? same : letter, depth - 1));
  // Arguments that name a field, a pattern or a regular expression are mostly valid constants.
  const auto constant = [&](size_t i, const std::vector<std::string>& texts) {
    if (i < e.children.size()) e.children[i] = LiteralOf(Value::String(OneOf(random_, texts)));
  };
  const std::vector<std::string> fields = {"year",   "month", "dow",     "week",  "hour",
                                           "second", "epoch", "quarter", "decade"};
  using plan::Function;
  switch (signature.function) {
    case Function::kExtract:
      constant(0, fields);
      break;
    case Function::kDatePart:
    case Function::kTruncateTime:
      if (Chance(random_, 80)) constant(0, fields);
      break;
    case Function::kMatches:
    case Function::kMatchesIgnoreCase:
      constant(1, {"a", "^b", "[ab]+$", "A", "(a|b)c?", "\\d"});
      break;
    case Function::kMatchedPart:
    case Function::kSimilarPart:
    case Function::kReplaceMatches:
    case Function::kCountMatches:
    case Function::kHasMatch:
    case Function::kNthMatch:
    case Function::kMatchPlace:
      constant(1, {"a", "b|ab", "[ab]+", "x*", "(a|b)c?", "(\\d)(\\d)?"});
      if (signature.function == Function::kReplaceMatches) constant(2, {"", "<\\1\\2>", "\\&\\&"});
      for (size_t i = signature.function == Function::kReplaceMatches ? 3 : 2; i < e.children.size(); ++i) {
        if (e.children[i].type.kind == TypeKind::kString) constant(i, {"", "i", "ic"});
        if (e.children[i].type.kind == TypeKind::kInteger && Chance(random_, 60))
          e.children[i] = LiteralOf(Value::Integer(static_cast<int64_t>(Below(random_, 3))));
      }
      break;
    case Function::kNumericLimb:
    case Function::kNumericSquareLimb:
    case Function::kDecimalLimb:
      if (Chance(random_, 80))
        e.children[1] = LiteralOf(Value::Integer(static_cast<int64_t>(Below(random_, 7)) - 1));
      break;
    case Function::kSubstring:
    case Function::kLeft:
      for (size_t i = 1; i < e.children.size(); ++i) {
        if (Chance(random_, 80))
          e.children[i] = LiteralOf(Value::Integer(static_cast<int64_t>(Below(random_, 8)) - 2));
      }
      break;
    case Function::kToDate:
    case Function::kToTimestamp:
      constant(1, {"YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "DD YY", "HH12 PM"});
      break;
    case Function::kFormatText:
      constant(0, {"%s", "<%-5s>", "%1$L", "%%"});
      break;
    case Function::kToChar:
      constant(1,
               signature.arguments[0] == 'T' || signature.arguments[0] == 'D' || signature.arguments[0] == 'Z'
                   ? std::vector<std::string>{"YYYY-MM-DD", "HH24:MI:SS.US", "Month IW TZ"}
               : signature.arguments[0] == 'C'
                   ? std::vector<std::string>{"HH24:MI:SS.US", "HH12 AM"}
                   : std::vector<std::string>{"999.99", "FM99990.0", "9.9EEEE", "S0009"});
      break;
    case Function::kMoveForward:
    case Function::kMoveBack:
      if (Chance(random_, 60)) e.children[1] = Literal(TypeKind::kInterval);
      break;
    default:
      break;
  }
  // UTC has loops over vectors, the others are computed row by row.
  const std::vector<std::string> zones = {"UTC", "UTC", "UTC", "Europe/Berlin", "<+05:30>-05:30"};
  if (signature.function == Function::kAtZone && Chance(random_, 95)) constant(0, zones);
  if (signature.function == Function::kTimestampTzOfText) {
    if (Chance(random_, 70)) constant(0, {"2001-09-09 01:46:40", "2024-01-31 10:00+02"});
    constant(1, zones);
  }
  if (signature.arguments[0] == 'Z' || e.children.size() == 3) {
    const size_t last = e.children.size() - 1;
    const bool zoned = std::string_view(signature.arguments).find('Z') != std::string_view::npos;
    if (zoned && signature.arguments[last] == 't') constant(last, zones);
  }
  const std::optional<Type> type = plan::ResultType(signature.function, e.children);
  if (!type) return Operand(result == '=' ? same : result, 0);
  e.type = *type;
  return e;
}

Expr RandomExpression::About(uint32_t slot, int depth) {
  only_ = static_cast<int>(slot);
  Expr e = Bool(depth);
  only_ = -1;
  return e;
}

}  // namespace nam::testing
