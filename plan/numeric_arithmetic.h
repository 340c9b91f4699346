#pragma once

#include <optional>

#include "base/check.h"
#include "plan/expression.h"
#include "types/numeric.h"

namespace nam::plan {

/// + - * / % of two numerics: the same for the reference and for vectors. Of / and %, b is not 0. Empty if
/// the whole part has too many digits.
inline std::optional<Numeric> NumericResult(Op op, const Numeric& a, const Numeric& b) {
  switch (op) {
    case Op::kAdd:
      return AddNumerics(a, b);
    case Op::kSubtract:
      return SubtractNumerics(a, b);
    case Op::kMultiply:
      return MultiplyNumerics(a, b);
    case Op::kDivide:
      return DivideNumerics(a, b);
    default:
      NAM_CHECK(op == Op::kModulo, "an operator of numbers");
      return ModuloNumerics(a, b);
  }
}

}  // namespace nam::plan
