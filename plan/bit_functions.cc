#include <cstdint>

#include "base/check.h"
#include "plan/function_families.h"
#include "types/sql_error.h"

/// Functions of 64-bit integers.
namespace nam::plan {
namespace {

/// For 64-bit numbers; the result may be one too large for them.
__int128 DivisorOf(int64_t a, int64_t b) {
  __int128 x = a < 0 ? -__int128{a} : a, y = b < 0 ? -__int128{b} : b;
  while (y != 0) {
    const __int128 rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}

absl::StatusOr<Value> Fitting(const Expr& call, __int128 n) {
  if (!FitsInteger(n, sizeof(int64_t))) return IntegerOutOfRange(sizeof(int64_t), call.position);
  return Value::Integer(static_cast<int64_t>(n));
}

}  // namespace

absl::StatusOr<Value> ApplyToBits(const Expr& call, std::span<const Value> arguments) {
  // Computed integers may be longer.
  for (const Value& argument : arguments) {
    if (!FitsInteger(argument.number, sizeof(int64_t)))
      return IntegerOutOfRange(sizeof(int64_t), call.position);
  }
  constexpr uint64_t kBits = 64;
  const auto a = static_cast<int64_t>(arguments[0].number);
  const auto b = arguments.size() > 1 ? static_cast<int64_t>(arguments[1].number) : 0;
  const uint64_t bits = static_cast<uint64_t>(a), places = static_cast<uint64_t>(b) % kBits;
  switch (FunctionOf(call)) {
    case F::kGreatestDivisor:
      return Fitting(call, DivisorOf(a, b));
    case F::kLeastMultiple: {
      if (a == 0 || b == 0) return Value::Integer(0);
      const __int128 multiple = a / DivisorOf(a, b) * b;
      return Fitting(call, multiple < 0 ? -multiple : multiple);
    }
    case F::kBitsAnd:
      return Value::Integer(a & b);
    case F::kBitsOr:
      return Value::Integer(a | b);
    case F::kBitsXor:
      return Value::Integer(a ^ b);
    case F::kBitsNot:
      return Value::Integer(~a);
    case F::kShiftLeft:
      return Value::Integer(static_cast<int64_t>(bits << places));
    default:
      break;
  }
  NAM_CHECK(FunctionOf(call) == F::kShiftRight, "a function of bits");
  return Value::Integer(a >> places);
}

}  // namespace nam::plan
