#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "base/status_macros.h"
#include "plan/function_families.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

absl::Status Overflow(int position) {
  return UserError(sqlstate::kNumberOutOfRange, "value out of range: overflow", position);
}
absl::Status Underflow(int position) {
  return UserError(sqlstate::kNumberOutOfRange, "value out of range: underflow", position);
}
absl::Status InputOutOfRange(int position) {
  return UserError(sqlstate::kNumberOutOfRange, "input is out of range", position);
}
absl::Status NegativeRoot(int position) {
  return UserError(sqlstate::kBadPower, "cannot take square root of a negative number", position);
}
absl::Status BadLogarithm(bool zero, int position) {
  return UserError(sqlstate::kBadLogarithm,
                   zero ? "cannot take logarithm of zero" : "cannot take logarithm of a negative number",
                   position);
}
absl::Status ZeroToNegative(int position) {
  return UserError(sqlstate::kBadPower, "zero raised to a negative power is undefined", position);
}
absl::Status ComplexPower(int position) {
  return UserError(sqlstate::kBadPower,
                   "a negative number raised to a non-integer power yields a complex result", position);
}

absl::StatusOr<Value> Exact(const Expr& e, std::optional<__int128> n) {
  if (!n.has_value()) return NumberOutOfRange(e.position);
  return Value{e.type, false, *n, {}};
}

// ─── double precision

absl::StatusOr<Value> RealPower(const Expr& e, double x, double y) {
  if (x == 0 && y < 0) return ZeroToNegative(e.position);
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && std::floor(y) != y) return ComplexPower(e.position);
  const double z = std::pow(x, y);
  if (std::isinf(z) && std::isfinite(x) && std::isfinite(y)) return Overflow(e.position);
  if (z == 0 && x != 0 && std::isfinite(x) && std::isfinite(y)) return Underflow(e.position);
  return Value::Double(z);
}

absl::StatusOr<Value> OfReals(const Expr& e, std::span<const Value> a) {
  const double x = a[0].real(), y = a.size() > 1 ? a[1].real() : 0;
  switch (FunctionOf(e)) {
    case F::kAbs:
      return Value::Double(std::abs(x));
    case F::kSign:
      return Value::Double(x > 0 ? 1 : x < 0 ? -1 : 0);  // NaN gives 0, too, as in PostgreSQL
    case F::kFloor:
      return Value::Double(std::floor(x));
    case F::kCeiling:
      return Value::Double(std::ceil(x));
    case F::kTruncate:
      return Value::Double(std::trunc(x));
    case F::kRound:
      return Value::Double(std::rint(x));
    case F::kPower:
      return RealPower(e, x, y);
    case F::kSquareRoot:
      if (x < 0) return NegativeRoot(e.position);
      return Value::Double(std::sqrt(x));
    case F::kCubeRoot:
      return Value::Double(std::cbrt(x));
    case F::kExp: {
      const double z = std::exp(x);
      if (std::isinf(z) && std::isfinite(x)) return Overflow(e.position);
      if (z == 0 && std::isfinite(x)) return Underflow(e.position);
      return Value::Double(z);
    }
    case F::kLn:
    case F::kLog10:
      if (x <= 0) return BadLogarithm(x == 0, e.position);
      return Value::Double(FunctionOf(e) == F::kLn ? std::log(x) : std::log10(x));
    case F::kDegrees: {
      const double z = x / (std::numbers::pi / 180);
      if (std::isinf(z) && std::isfinite(x)) return Overflow(e.position);
      return Value::Double(z);
    }
    case F::kRadians:
      return Value::Double(x * (std::numbers::pi / 180));
    case F::kAtan:
      return Value::Double(std::atan(x));
    case F::kAtan2:
      return Value::Double(std::atan2(x, y));
    case F::kAsin:
    case F::kAcos:
      if (x < -1 || x > 1) return InputOutOfRange(e.position);
      return Value::Double(FunctionOf(e) == F::kAsin ? std::asin(x) : std::acos(x));
    default:
      break;
  }
  if (std::isinf(x)) return InputOutOfRange(e.position);
  return Value::Double(FunctionOf(e) == F::kSin   ? std::sin(x)
                       : FunctionOf(e) == F::kCos ? std::cos(x)
                                                  : std::tan(x));
}

// ─── decimals and integers

int SignOf(__int128 n) {
  return n > 0 ? 1 : n < 0 ? -1 : 0;
}

/// Rounds towards negative infinity, or positive.
absl::StatusOr<Value> WholeOf(const Expr& e, const Value& a, bool up) {
  const __int128 power = PowerOfTen(a.type.scale);
  const __int128 n = a.number / power, rest = a.number % power;
  return Exact(e, n + (up ? rest > 0 : -static_cast<int>(rest < 0)));
}

/// Rounds to `decimals`, which may be negative, at the scale of the result; half away from zero, or
/// truncates.
absl::StatusOr<Value> ToDecimals(const Expr& e, const Value& a, __int128 decimals, bool round) {
  decimals = std::clamp<__int128>(decimals, -kMaxDecimalDigits, kMaxDecimalDigits);
  __int128 n = a.number;
  const __int128 dropped = a.type.scale - decimals;
  // The result may fit where the same digits at the operand's scale do not.
  if (round && dropped > 0 && decimals == e.type.scale)
    return Exact(e, Rescale(n, a.type.scale, e.type.scale));
  if (dropped > kMaxDecimalDigits) {
    n = 0;  // all digits and one more
  } else if (dropped > 0) {
    const __int128 power = PowerOfTen(static_cast<int>(dropped));
    const __int128 rest = n % power;
    n -= rest;
    if (round && (rest < 0 ? -rest : rest) >= power - (rest < 0 ? -rest : rest))
      n += SignOf(a.number) * power;
    if (!FitsDecimal(n)) return NumberOutOfRange(e.position);
  }
  return Exact(e, Rescale(n, a.type.scale, e.type.scale));
}

absl::StatusOr<Value> Quotient(const Expr& e, const Value& a, const Value& b) {
  if (b.number == 0) return DivisionByZero(e.position);
  // One more digit than the result has would round: truncates after a division that does not.
  const int shift = b.type.scale - a.type.scale;
  const std::optional<__int128> x = shift > 0 ? Rescale(a.number, 0, shift) : a.number;
  const std::optional<__int128> y = shift < 0 ? Rescale(b.number, 0, -shift) : b.number;
  if (x && y) return Exact(e, *x / *y);
  if (!y) return Exact(e, 0);  // a has at most 38 digits, the divisor more
  return NumberOutOfRange(e.position);
}

absl::StatusOr<Value> Remainder(const Expr& e, const Value& a, const Value& b) {
  if (b.number == 0) return DivisionByZero(e.position);
  const std::optional<__int128> x = Rescale(a.number, a.type.scale, e.type.scale);
  const std::optional<__int128> y = Rescale(b.number, b.type.scale, e.type.scale);
  if (x && y) return Exact(e, *x % *y);
  if (x) return Exact(e, *x);  // smaller than the divisor
  return NumberOutOfRange(e.position);
}

absl::StatusOr<Value> OfDecimals(const Expr& e, std::span<const Value> a) {
  switch (FunctionOf(e)) {
    case F::kAbs:
      return Exact(e, a[0].number < 0 ? -a[0].number : a[0].number);
    case F::kSign:
      return Exact(e, SignOf(a[0].number));
    case F::kFloor:
    case F::kCeiling:
      return WholeOf(e, a[0], FunctionOf(e) == F::kCeiling);
    case F::kTruncate:
    case F::kRound:
      return ToDecimals(e, a[0], a.size() > 1 ? a[1].number : 0, FunctionOf(e) == F::kRound);
    case F::kDivide:
      return Quotient(e, a[0], a[1]);
    case F::kRemainder:
      return Remainder(e, a[0], a[1]);
    default:
      break;
  }
  NAM_CHECK(false, "a function of decimals");
  return Value::Null(e.type);
}

/// The greatest or the least argument that is not NULL.
Value Extreme(const Expr& e, std::span<const Value> a, bool greatest) {
  const Value* best = nullptr;
  for (const Value& value : a) {
    if (value.null) continue;
    const int order = best == nullptr ? 0 : Compare(value, *best);
    if (best == nullptr || (greatest ? order > 0 : order < 0)) best = &value;
  }
  if (best == nullptr) return Value::Null(e.type);
  Value out = *best;
  out.type = e.type;
  return out;
}

}  // namespace

absl::StatusOr<Value> ApplyToNumbers(const Expr& call, std::span<const Value> arguments) {
  const Function function = FunctionOf(call);
  if (function == F::kGreatest || function == F::kLeast)
    return Extreme(call, arguments, function == F::kGreatest);
  if (arguments[0].type.real()) return OfReals(call, arguments);
  if (arguments[0].type.kind == TypeKind::kNumeric) return ApplyToOwnScales(call, arguments);
  return OfDecimals(call, arguments);
}

}  // namespace nam::plan
