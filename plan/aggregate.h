#pragma once

#include <cstdint>

#include "plan/expression.h"
#include "types/type.h"

namespace nam::plan {

/// Plans hold these numbers: further ones go to the end.
enum class AggregateFunction : uint8_t { kCountRows, kCount, kSum, kMin, kMax, kAverage, kCountDistinct };

/// sum of integers is an integer, of decimals a decimal of the same scale; avg is a decimal of scale
/// max(scale + 6, 6), rounded half away from zero; over no rows all but the counts are NULL. Sums are
/// exact in 128 bits and an error beyond 38 digits.
struct Aggregate {
  AggregateFunction function = AggregateFunction::kCountRows;
  Expr argument;  // over columns; unused by kCountRows
  Type type;
};

/// One key of an ORDER BY.
struct OrderKey {
  Expr expr;
  bool descending = false;
  bool nulls_first = false;  // default: nulls last ascending, first descending, as PostgreSQL
};

}  // namespace nam::plan
