#include "plan/slot_of.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "plan/cast.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "plan/plan_error.h"
#include "plan/post_order.h"
#include "types/date.h"
#include "types/decimal.h"

namespace nam::plan {
namespace {

/// PostgreSQL's bound of char(n). LIKE pads to it, so it must be bounded.
constexpr uint32_t kLongestChar = 10'485'760;

constexpr Bounds kTimes{0, kMicrosecondsPerDay, true};
constexpr Bounds kDates{kLeastDay, kGreatestDay, true};
constexpr Bounds kTimestamps{static_cast<__int128>(kLeastDay) * kMicrosecondsPerDay,
                             static_cast<__int128>(kGreatestDay + 1) * kMicrosecondsPerDay - 1, true};

/// Whether both have one kind and scale, so that their numbers mean the same.
bool SameKindAndScale(const Type& a, const Type& b) {
  return a.kind == b.kind && a.scale == b.scale;
}

// ─── Bounds

/// The largest distance from 0.
std::optional<__int128> Magnitude(const Bounds& b) {
  __int128 below;
  if (!b.known || __builtin_sub_overflow(__int128{0}, b.low, &below)) return std::nullopt;
  return std::max(below, b.high);
}

Bounds Symmetric(const std::optional<__int128>& magnitude) {
  return magnitude ? Bounds{-*magnitude, *magnitude, true} : Bounds{};
}

Bounds Sum(const Bounds& a, const Bounds& b) {
  Bounds out;
  out.known = a.known && b.known && !__builtin_add_overflow(a.low, b.low, &out.low) &&
              !__builtin_add_overflow(a.high, b.high, &out.high);
  return out.known ? out : Bounds{};
}

Bounds Difference(const Bounds& a, const Bounds& b) {
  Bounds out;
  out.known = a.known && b.known && !__builtin_sub_overflow(a.low, b.high, &out.low) &&
              !__builtin_sub_overflow(a.high, b.low, &out.high);
  return out.known ? out : Bounds{};
}

Bounds Product(const Bounds& a, const Bounds& b) {
  __int128 x[4];
  if (!a.known || !b.known || __builtin_mul_overflow(a.low, b.low, &x[0]) ||
      __builtin_mul_overflow(a.low, b.high, &x[1]) || __builtin_mul_overflow(a.high, b.low, &x[2]) ||
      __builtin_mul_overflow(a.high, b.high, &x[3])) {
    return {};
  }
  return {*std::min_element(x, x + 4), *std::max_element(x, x + 4), true};
}

Bounds Clamped(const Bounds& b, const Bounds& to) {
  if (!b.known) return to;
  return {std::clamp(b.low, to.low, to.high), std::clamp(b.high, to.low, to.high), true};
}

Bounds United(const Bounds& a, const Bounds& b) {
  if (!a.known || !b.known) return {};
  return {std::min(a.low, b.low), std::max(a.high, b.high), true};
}

/// Rounding preserves order, so the bounds stay bounds.
Bounds Rescaled(const Bounds& b, int from, int to) {
  if (!b.known || from == to) return b;
  const std::optional<__int128> low = Rescale(b.low, from, to), high = Rescale(b.high, from, to);
  return low && high ? Bounds{*low, *high, true} : Bounds{};
}

Bounds OfInteger(int bytes) {
  const __int128 limit = __int128{1} << (8 * bytes - 1);
  return {-limit, limit - 1, true};
}

/// Of integers. A divisor is at least 1, or an error.
Bounds QuotientBounds(const Bounds& a, const Bounds& b) {
  if (a.known && b.known && b.low >= 0)
    return {std::min<__int128>(a.low, 0), std::max<__int128>(a.high, 0), true};
  return Symmetric(Magnitude(a));
}

/// Smaller than the divisor, no larger than the dividend, and of its sign.
Bounds RemainderBounds(const Bounds& a, const Bounds& b) {
  std::optional<__int128> most = Magnitude(b);
  if (most) most = std::max<__int128>(*most - 1, 0);
  const std::optional<__int128> dividend = Magnitude(a);
  if (!most || (dividend && *dividend < *most)) most = dividend;
  Bounds out = Symmetric(most);
  if (out.known && a.known && a.low >= 0) out.low = 0;
  if (out.known && a.known && a.high <= 0) out.high = 0;
  return out;
}

Bounds CastBounds(const Expr& e, const Slot& from) {
  const Bounds& b = from.bounds;
  switch (e.type.kind) {
    case TypeKind::kInteger:
      if (from.type.kind == TypeKind::kBool) return {0, 1, true};
      return Clamped(from.type.numeric() ? Rescaled(b, from.type.scale, 0) : Bounds{},
                     OfInteger(IntegerBytes(e)));
    case TypeKind::kDecimal: {
      const Bounds rescaled = from.type.numeric() ? Rescaled(b, from.type.scale, e.type.scale) : Bounds{};
      const __int128 most = PowerOfTen(DecimalDigits(e)) - 1;
      return e.index > 0 ? Clamped(rescaled, {-most, most, true}) : rescaled;
    }
    case TypeKind::kDate: {
      if (from.type.kind == TypeKind::kDate) return b;
      if (from.type.kind != TypeKind::kTimestamp) return kDates;
      const Bounds times = Clamped(b, kTimestamps);
      return {DayOf(static_cast<int64_t>(times.low)), DayOf(static_cast<int64_t>(times.high)), true};
    }
    case TypeKind::kTime:
      return from.type.kind == TypeKind::kTime ? b : kTimes;
    case TypeKind::kTimestampTz:  // of its own kind alone
      return from.type.kind == TypeKind::kTimestampTz ? b : kTimestamps;
    case TypeKind::kTimestamp:
      if (from.type.kind == TypeKind::kTimestamp) return b;
      if (from.type.kind != TypeKind::kDate) return kTimestamps;
      return Product(Clamped(b, kDates), {kMicrosecondsPerDay, kMicrosecondsPerDay, true});
    default:
      return {};
  }
}

// ─── Operators

bool Nullable(std::span<const Slot> args) {
  return std::any_of(args.begin(), args.end(), [](const Slot& slot) { return slot.nullable; });
}

bool AllBool(std::span<const Slot> args) {
  return std::all_of(args.begin(), args.end(),
                     [](const Slot& slot) { return slot.type.kind == TypeKind::kBool; });
}

/// Whether an operator's number of operands is right.
bool HasItsOperands(Op op, size_t n) {
  switch (op) {
    case Op::kColumn:
    case Op::kLiteral:
      return n == 0;
    case Op::kNegate:
    case Op::kNot:
    case Op::kIsNull:
    case Op::kLike:
    case Op::kCast:
    case Op::kExtractYear:
    case Op::kExtractMonth:
    case Op::kExtractDay:
      return n == 1;
    case Op::kAnd:
    case Op::kOr:
    case Op::kIn:
      return n >= 2;
    case Op::kCase:
      return n >= 3 && n % 2 == 1;
    case Op::kFunction:
      return n >= 1;
    default:
      return n == 2;
  }
}

absl::StatusOr<Slot> OfDates(const Expr& e, const Slot& a, const Slot& b) {
  if (e.op == Op::kSubtract && b.type.kind == TypeKind::kDate) {
    if (e.type != Type::Integer()) return BadExpression("the difference of dates is an integer");
    return Slot{e.type, a.nullable || b.nullable, Difference(a.bounds, b.bounds)};
  }
  if ((e.op != Op::kAdd && e.op != Op::kSubtract) || b.type.kind != TypeKind::kInteger ||
      e.type != Type::Date())
    return BadExpression("dates move by days");
  const Bounds moved = e.op == Op::kAdd ? Sum(a.bounds, b.bounds) : Difference(a.bounds, b.bounds);
  return Slot{e.type, a.nullable || b.nullable, Clamped(moved, kDates)};
}

absl::StatusOr<Slot> OfArithmetic(const Expr& e, const Slot& a, const Slot& b) {
  if (a.type.kind == TypeKind::kDate) return OfDates(e, a, b);
  if (e.type.real()) {
    if (a.type != e.type || b.type != e.type || e.op == Op::kModulo)
      return BadExpression("arithmetic of double precision over something else");
    return Slot{e.type, a.nullable || b.nullable, {}};
  }
  if (e.type.kind == TypeKind::kNumeric) {
    const bool divides = e.op == Op::kDivide || e.op == Op::kModulo;
    const auto operand = [&](const Type& type) { return type == e.type || (type.numeric() && !divides); };
    if (!operand(a.type) || !operand(b.type))
      return BadExpression("arithmetic of numeric over something else");
    return Slot{e.type, a.nullable || b.nullable, {}};
  }
  if (!a.type.numeric() || !b.type.numeric())
    return BadExpression("arithmetic over something else than numbers");
  const int sa = a.type.scale, sb = b.type.scale, larger = std::max(sa, sb);
  const bool integers = a.type.kind == TypeKind::kInteger && b.type.kind == TypeKind::kInteger;
  if (integers != (e.type.kind == TypeKind::kInteger)) return BadExpression("arithmetic of another type");
  if ((e.op == Op::kDivide || e.op == Op::kModulo) && !integers)
    return BadExpression("/ or % of decimals, which are functions or of numerics");
  const int scale = e.op == Op::kMultiply ? sa + sb : larger;
  if (!e.type.numeric() || e.type.scale != scale) return BadExpression("arithmetic of another scale");
  Bounds bounds;
  switch (e.op) {
    case Op::kAdd:
      bounds = Sum(Rescaled(a.bounds, sa, larger), Rescaled(b.bounds, sb, larger));
      break;
    case Op::kSubtract:
      bounds = Difference(Rescaled(a.bounds, sa, larger), Rescaled(b.bounds, sb, larger));
      break;
    case Op::kMultiply:
      bounds = Product(a.bounds, b.bounds);
      break;
    case Op::kDivide:
      bounds = QuotientBounds(a.bounds, b.bounds);
      break;
    default:
      bounds = RemainderBounds(a.bounds, b.bounds);
  }
  return Slot{e.type, a.nullable || b.nullable, bounds};
}

absl::StatusOr<Slot> OfComparison(const Slot& a, const Slot& b) {
  const bool comparable = a.type.kind == b.type.kind || (a.type.numeric() && b.type.numeric());
  if (!comparable) return BadExpression("a comparison of two kinds");
  return Slot{Type::Bool(), a.nullable || b.nullable, {}};
}

absl::StatusOr<Slot> OfIn(const Expr& e, std::span<const Slot> args) {
  for (size_t i = 1; i < args.size(); ++i) {
    if (e.children[i].op != Op::kLiteral || e.children[i].literal.null ||
        !SameKindAndScale(args[i].type, args[0].type))
      return BadExpression("IN over something else than values of one type");
  }
  return Slot{Type::Bool(), args[0].nullable, {}};
}

absl::StatusOr<Slot> OfCase(const Expr& e, std::span<const Slot> args) {
  Slot out{e.type, false, {}};
  bool any = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool condition = i % 2 == 0 && i + 1 < args.size();
    if (condition) {
      if (args[i].type.kind != TypeKind::kBool) return BadExpression("WHEN something that is no condition");
      continue;
    }
    if (!SameKindAndScale(args[i].type, e.type)) return BadExpression("CASE with a result of another type");
    out.nullable = out.nullable || args[i].nullable;
    if (!HasBounds(e.type) || IsNullLiteral(e.children[i])) continue;
    out.bounds = any ? United(out.bounds, args[i].bounds) : args[i].bounds;
    any = true;
  }
  if (!any && HasBounds(e.type)) out.bounds = {0, 0, true};
  return out;
}

absl::StatusOr<Slot> OfCast(const Expr& e, const Slot& from) {
  if (!CastExists(from.type, e.type)) return BadExpression("a cast that does not exist");
  const bool known_width = e.index == -1 || e.index == 2 || e.index == 4 || e.index == 8;
  const bool known_digits = e.index == -1 || (e.index > 0 && e.index <= kMaxDecimalDigits);
  const bool fits = e.type.kind == TypeKind::kInteger   ? known_width
                    : e.type.kind == TypeKind::kDecimal ? known_digits
                                                        : e.index == -1;
  if (!fits) return BadExpression("a cast to a type of no known width");
  return Slot{e.type, from.nullable, CastBounds(e, from)};
}

absl::StatusOr<Slot> OfExtract(const Expr& e, const Slot& from) {
  if (from.type.kind != TypeKind::kDate || e.type != Type::Integer())
    return BadExpression("a field of no date");
  const int most = e.op == Op::kExtractYear ? 9999 : e.op == Op::kExtractMonth ? 12 : 31;
  return Slot{e.type, from.nullable, {1, most, true}};
}

/// The one check of calls: the function exists, and its operands fit a signature.
absl::StatusOr<Slot> OfFunction(const Expr& e, std::span<const Slot> args) {
  if (e.index < 0 || e.index > static_cast<int>(kLastFunction))
    return BadExpression("a function that does not exist");
  const std::optional<Type> type = ResultType(FunctionOf(e), e.children);
  if (!type || *type != e.type) return BadExpression("a function that does not take its operands");
  // Some strict functions return NULL for other values; of the others few never return it.
  const bool nullable =
      IsStrict(FunctionOf(e)) ? MakesNulls(FunctionOf(e)) || Nullable(args) : !NeverNull(FunctionOf(e), args);
  return Slot{e.type, nullable, ResultBounds(e)};
}

absl::StatusOr<Slot> OfLiteral(const Expr& e) {
  if (!IsValueOf(e.literal, e.type)) return BadExpression("a literal that is no value of its type");
  Slot out{e.type, e.literal.null, {}};
  if (HasBounds(e.type)) out.bounds = {e.literal.null ? 0 : e.literal.number, 0, true};
  out.bounds.high = out.bounds.low;
  return out;
}

absl::StatusOr<Slot> OfColumn(const Expr& e, const Schema& input) {
  const auto slot = static_cast<uint32_t>(e.column.column);
  if (e.column != ColumnRef{0, e.column.column} || slot >= input.size())
    return BadExpression("a slot that is not there");
  if (input[slot].type != e.type) return BadExpression("a column of another type than its slot");
  return input[slot];
}

/// The common part of operators that return a boolean.
absl::StatusOr<Slot> OfCondition(const Expr& e, std::span<const Slot> args) {
  if (e.type != Type::Bool()) return BadExpression("a condition of another type than boolean");
  switch (e.op) {
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      if (!AllBool(args)) return BadExpression("AND, OR or NOT of something else than booleans");
      return Slot{e.type, Nullable(args), {}};
    case Op::kIsNull:
      return Slot{e.type, false, {}};
    case Op::kIn:
      return OfIn(e, args);
    case Op::kLike:
      if (args[0].type.kind != TypeKind::kString || e.literal.null || !IsValueOf(e.literal, Type::String()))
        return BadExpression("LIKE of something else than text");
      return Slot{e.type, args[0].nullable, {}};
    default:
      return OfComparison(args[0], args[1]);
  }
}

absl::StatusOr<Slot> OfNode(const Expr& e, std::span<const Slot> args, const Schema& input) {
  if (!HasItsOperands(e.op, args.size())) return BadExpression("an operator with another number of operands");
  if (!IsValueType(e.type)) return BadExpression("a type without values");
  switch (e.op) {
    case Op::kColumn:
      return OfColumn(e, input);
    case Op::kLiteral:
      return OfLiteral(e);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
      return OfArithmetic(e, args[0], args[1]);
    case Op::kNegate:
      if ((args[0].type.real() || args[0].type == Type::Numeric()) && args[0].type == e.type)
        return Slot{e.type, args[0].nullable, {}};
      if (!args[0].type.numeric() || args[0].type != e.type)
        return BadExpression("the negative of no number");
      return Slot{e.type, args[0].nullable, Difference({0, 0, true}, args[0].bounds)};
    case Op::kCase:
      return OfCase(e, args);
    case Op::kCast:
      return OfCast(e, args[0]);
    case Op::kExtractYear:
    case Op::kExtractMonth:
    case Op::kExtractDay:
      return OfExtract(e, args[0]);
    case Op::kFunction:
      return OfFunction(e, args);
    default:
      return OfCondition(e, args);
  }
}

}  // namespace

bool IsValueType(const Type& type) {
  if (!type.HasValues() || type.precision != 0) return false;
  if (type.scale > (type.kind == TypeKind::kDecimal ? kMaxDecimalDigits : 0)) return false;
  if (type.kind != TypeKind::kString) return type.length == 0 && !type.blank_padded;
  return !type.blank_padded || type.length <= kLongestChar;
}

bool IsValueOf(const Value& value, const Type& type) {
  if (value.null) return true;
  if (!SameKindAndScale(value.type, type)) return false;
  const auto within = [&](const Bounds& b) { return value.number >= b.low && value.number <= b.high; };
  switch (type.kind) {
    case TypeKind::kBool:
      return within({0, 1, true});
    case TypeKind::kInteger:
    case TypeKind::kDecimal:
      return FitsDecimal(value.number);
    case TypeKind::kDate:
      return within(kDates);
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      return within(kTimestamps);
    case TypeKind::kTime:
      return within(kTimes);
    case TypeKind::kNumeric:
      return IsNumericWord(value.number);
    case TypeKind::kString:
    case TypeKind::kInterval:
    case TypeKind::kUuid:
    case TypeKind::kBytes:
      return true;
    case TypeKind::kDouble:
    case TypeKind::kReal: {
      if (!within({INT64_MIN, INT64_MAX, true})) return false;
      const double x = value.real();
      return OrderedBits(x) == value.number && (type.kind == TypeKind::kDouble || !std::isfinite(x) ||
                                                static_cast<double>(static_cast<float>(x)) == x);
    }
    default:
      return false;
  }
}

bool HasBounds(const Type& type) {
  return type.numeric() || type.kind == TypeKind::kDate || type.kind == TypeKind::kTimestamp ||
         type.kind == TypeKind::kTimestampTz || type.kind == TypeKind::kTime;
}

absl::StatusOr<Slot> SlotOf(const Expr& expr, const Schema& input) {
  std::vector<Slot> done;  // slots of nodes whose parents come later
  NAM_RETURN_IF_ERROR(ForPostOrder(expr, [&](const Expr& e) -> absl::Status {
    const size_t n = e.children.size();
    NAM_ASSIGN_OR_RETURN(Slot slot, OfNode(e, std::span(done).last(n), input));
    done.resize(done.size() - n);
    done.push_back(std::move(slot));
    return absl::OkStatus();
  }));
  return done.back();
}

Expr SlotExpr(const Schema& schema, uint32_t slot) {
  Expr expr;
  expr.op = Op::kColumn;
  expr.type = schema[slot].type;
  expr.column = {0, static_cast<int>(slot)};
  return expr;
}

std::vector<Expr> SlotExprs(const Schema& schema) {
  std::vector<Expr> slots;
  for (uint32_t slot = 0; slot < schema.size(); ++slot) slots.push_back(SlotExpr(schema, slot));
  return slots;
}

}  // namespace nam::plan
