#pragma once

#include <cstdint>

#include "plan/expression.h"
#include "types/type.h"

namespace nam::plan {

/// Plans hold these numbers: append new ones.
enum class AggregateFunction : uint8_t {
  kCountRows,
  kCount,
  kSum,
  kMin,
  kMax,
  kAverage,
  kCountDistinct,
  kVarPop,
  kVarSamp,
  kStddevPop,
  kStddevSamp,
  kBoolAnd,  // also every
  kBoolOr,
  kBitAnd,
  kBitOr,
  kBitXor,
  kCovarPop,  // two arguments, as the next two: over rows where neither is NULL
  kCovarSamp,
  kCorr,
  kStringAggregate,  // [value, separator]: windows only
  kRegrAvgX,         // [y, x] as all that follow: the line of least squares y = slope · x + intercept
  kRegrAvgY,
  kRegrSxx,  // sum of squared distances from the average, of y and x: of products
  kRegrSyy,
  kRegrSxy,
  kRegrSlope,
  kRegrIntercept,
  kRegrR2,
};
inline constexpr AggregateFunction kLastAggregate = AggregateFunction::kRegrR2;

/// sum of integers is an integer, of decimals a decimal of the same scale; averages, variances
/// and deviations of both are numerics of PostgreSQL's scale, from exact sums; over no rows all but the
/// counts are NULL. Sums are exact in 128 bits and an error beyond 38 digits. Numerics are not added up: see
/// optimizer/packed_keys.h. Functions of two arguments are double precision,
/// computed from exact sums for exact numbers; both arguments are exact, or both double precision. Sample
/// functions are NULL over one row, a correlation is NULL where one side does not vary, a slope where x does
/// not.
struct Aggregate {
  AggregateFunction function = AggregateFunction::kCountRows;
  Expr argument;  // over columns; unused by kCountRows
  Type type;
  bool distinct = false;  // takes each value once: sums, averages, variances, bit_xor
  Expr second;            // for functions of two arguments
};

/// One key of an ORDER BY.
struct OrderKey {
  Expr expr;
  bool descending = false;
  bool nulls_first = false;  // default: nulls last ascending, first descending, as in PostgreSQL
};

}  // namespace nam::plan
