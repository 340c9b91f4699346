#pragma once

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "plan/expression.h"

/// Arithmetic of double precision and real with PostgreSQL's errors: the same for the reference and for
/// vectors.
namespace nam::plan {

enum class RealFault : uint8_t { kNone, kOverflow, kUnderflow, kDivisionByZero };

/// 22003 or 22012.
absl::Status ErrorOf(RealFault fault, int position);

/// The fault of x and y if their result `z` is an infinity or a zero.
inline RealFault FaultOf(Op op, double x, double y, double z) {
  if (op == Op::kDivide) {
    if (y == 0) return std::isnan(x) ? RealFault::kNone : RealFault::kDivisionByZero;
    if (std::isinf(z)) return std::isinf(x) ? RealFault::kNone : RealFault::kOverflow;
    return z == 0 && x != 0 && !std::isinf(y) ? RealFault::kUnderflow : RealFault::kNone;
  }
  if (std::isinf(z)) return std::isinf(x) || std::isinf(y) ? RealFault::kNone : RealFault::kOverflow;
  return op == Op::kMultiply && z == 0 && x != 0 && y != 0 ? RealFault::kUnderflow : RealFault::kNone;
}

/// + - * / of two numbers; of 32 bits if `narrow`, where rounding twice is harmless.
inline double RealResult(Op op, double x, double y, bool narrow) {
  const double z = op == Op::kAdd ? x + y : op == Op::kSubtract ? x - y : op == Op::kMultiply ? x * y : x / y;
  return narrow ? static_cast<double>(static_cast<float>(z)) : z;
}

}  // namespace nam::plan
