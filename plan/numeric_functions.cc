#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/status_macros.h"
#include "plan/function_families.h"
#include "types/bytes.h"
#include "types/decimal.h"
#include "types/numeric.h"
#include "types/sql_error.h"

/// Functions of numbers that have a scale of their own, and the parts of their groups, orders and aggregates:
/// optimizer/packed_keys.h.
namespace nam::plan {
namespace {

absl::StatusOr<Value> NumericValue(const Expr& e, const std::optional<Numeric>& n) {
  return n ? absl::StatusOr<Value>(Value::OfNumeric(*n)) : NumericOutOfRange(e.position);
}

absl::StatusOr<Value> NumericValue(absl::StatusOr<Numeric> n) {
  if (!n.ok()) return n.status();
  return Value::OfNumeric(*n);
}

/// As a value of the call's type, a decimal of a known scale or a numeric.
absl::StatusOr<Value> OfType(const Expr& e, const std::optional<Numeric>& n) {
  if (!n) return NumericOutOfRange(e.position);
  if (e.type.kind == TypeKind::kNumeric) return Value::OfNumeric(*n);
  const std::optional<__int128> decimal = NumericToDecimal(*n, e.type.scale);
  return decimal ? absl::StatusOr<Value>(Value{e.type, false, *decimal, {}}) : NumericOutOfRange(e.position);
}

int Decimals(std::span<const Value> a) {
  if (a.size() < 2) return 0;
  constexpr __int128 kMost = 2 * kMaxNumericScale;
  return static_cast<int>(std::clamp(a[1].number, -kMost, kMost));
}

absl::Status NoNumericParts(int position) {
  return UserError(sqlstate::kBadParameter, "not the parts of a numeric", position);
}

absl::StatusOr<Value> LimbOf(const Expr& call, std::span<const Value> a, bool square) {
  const int limbs = square ? kNumericSquareLimbs : kNumericLimbs;
  if (a[1].number < 0 || a[1].number >= limbs) return NoNumericParts(call.position);
  const auto which = static_cast<int>(a[1].number);
  const Numeric n = a[0].unpacked();
  return Value::Decimal(square ? NumericSquareLimb(n, which) : NumericLimb(n, which), 0);
}

/// From sums of limbs of numbers, or of numbers and their squares.
absl::StatusOr<Value> OfSums(const Expr& call, std::span<const Value> a) {
  const Function function = FunctionOf(call);
  const bool counted = function != F::kNumericOfLimbs;
  const bool moments = function != F::kNumericOfLimbs && function != F::kNumericAverage;
  __int128 sums[kNumericLimbs], squares[kNumericSquareLimbs];
  size_t at = 0;
  for (__int128& sum : sums) sum = a[at++].number;
  if (moments) {
    for (__int128& square : squares) square = a[at++].number;
  }
  const __int128 scale = a[at++].number, count = counted ? a[at].number : 1;
  if (scale < 0 || scale > kMaxNumericScale || count < 1 || count > INT64_MAX)
    return NoNumericParts(call.position);
  const auto of = static_cast<int>(scale);
  const auto n = static_cast<int64_t>(count);
  if (!counted) return NumericValue(call, NumericOfLimbs(sums, of));
  if (!moments) return NumericValue(NumericAverage(sums, of, n));
  const bool sample = function == F::kNumericVarSamp || function == F::kNumericStddevSamp;
  const bool root = function == F::kNumericStddevPop || function == F::kNumericStddevSamp;
  if (sample && n < 2) return Value::Null(call.type);
  return NumericValue(NumericVariance(sums, squares, of, n, sample, root));
}

absl::StatusOr<Value> DecimalLimbOf(const Expr& call, std::span<const Value> a) {
  if (a[1].number < 0 || a[1].number >= kDecimalLimbs) return NoNumericParts(call.position);
  return Value::Decimal(DecimalLimb(a[0].number, static_cast<int>(a[1].number)), 0);
}

/// From sums of limbs of decimals.
absl::StatusOr<Value> OfDecimalSums(const Expr& call, std::span<const Value> a) {
  const __int128 sums[kDecimalLimbs] = {a[0].number, a[1].number};
  const bool counted = FunctionOf(call) == F::kDecimalAverage;
  const __int128 scale = a[2].number, count = counted ? a[3].number : 1;
  if (scale < 0 || scale > kMaxDecimalDigits || count < 1 || count > INT64_MAX)
    return NoNumericParts(call.position);
  const auto of = static_cast<int>(scale);
  if (!counted) return NumericValue(call, NumericOfDecimalLimbs(sums, of));
  return NumericValue(DecimalAverage(sums, of, static_cast<int64_t>(count)));
}

}  // namespace

absl::StatusOr<Value> ApplyToOwnScales(const Expr& call, std::span<const Value> arguments) {
  const Numeric a = arguments[0].unpacked();
  const bool two = arguments.size() > 1 && arguments[1].type.kind == TypeKind::kNumeric;
  const Numeric b = two ? arguments[1].unpacked() : Numeric();
  switch (FunctionOf(call)) {
    case F::kAbs:
      return Value::OfNumeric(AbsNumeric(a));
    case F::kSign:
      return OfType(call, SignNumeric(a));
    case F::kFloor:
      return OfType(call, FloorNumeric(a));
    case F::kCeiling:
      return OfType(call, CeilNumeric(a));
    case F::kTruncate:
      return OfType(call, TruncNumeric(a, Decimals(arguments)));
    case F::kRound:
      return OfType(call, RoundNumeric(a, Decimals(arguments)));
    case F::kDivide:
      if (b.digits == 0) return DivisionByZero(call.position);
      return OfType(call, WholeQuotientOfNumerics(a, b));
    case F::kRemainder:
      if (b.digits == 0) return DivisionByZero(call.position);
      return OfType(call, ModuloNumerics(a, b));
    case F::kPower:
      return NumericValue(NumericPower(a, b, call.position));
    case F::kSquareRoot:
      return NumericValue(NumericSqrt(a, call.position));
    case F::kExp:
      return NumericValue(NumericExp(a, call.position));
    case F::kLn:
      return NumericValue(NumericLn(a, call.position));
    case F::kLog10:
      return NumericValue(NumericLog({10, 0}, a, call.position));
    case F::kLog:
      return NumericValue(NumericLog(a, b, call.position));
    default:
      break;
  }
  NAM_CHECK(false, "a function of numerics");
  return Value::Null(call.type);
}

absl::StatusOr<Value> ApplyToNumerics(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kNumericKey:
      return Value::Decimal(NumericKey(a[0].unpacked()), 0);
    case F::kNumericOrder:
      return BytesValue(OrderedNumericBytes(a[0].unpacked()));
    case F::kNumericOfOrder: {
      const std::optional<Numeric> number = NumericOfOrderedBytes(a[0].text);
      return number ? absl::StatusOr<Value>(Value::OfNumeric(*number)) : NoNumericParts(call.position);
    }
    case F::kNumericScale:
      return Value::Integer(a[0].unpacked().scale);
    case F::kNumericLimb:
      return LimbOf(call, a, /*square=*/false);
    case F::kNumericSquareLimb:
      return LimbOf(call, a, /*square=*/true);
    case F::kDecimalLimb:
      return DecimalLimbOf(call, a);
    case F::kDecimalOfLimbs:
    case F::kDecimalAverage:
      return OfDecimalSums(call, a);
    default:
      return OfSums(call, a);
  }
}

}  // namespace nam::plan
