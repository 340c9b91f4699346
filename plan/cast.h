#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "plan/expression.h"

namespace nam::plan {

/// A kCast of a value that is not NULL, with PostgreSQL's rules: numbers that lose decimals are rounded half
/// away from zero, double precision that becomes an integer half to even; what does not fit is 22003 or
/// 22008, text that is no value of the type 22P02 or 22007.
absl::StatusOr<Value> Cast(const Expr& e, Value from);
/// 22003, of a kCast to a decimal of fewer than 38 digits.
absl::Status NumericFieldOverflow(const Expr& e);
/// Whether there is such a cast.
bool CastExists(const Type& from, const Type& to);

/// The nearest double precision, whatever the number.
double RealOf(__int128 unscaled, int scale);
/// The nearest real, as double precision. Nothing if it is too large or too near to 0.
std::optional<double> NarrowedToReal(double x);
/// An integer, half to even. Nothing beyond 64 bits.
std::optional<int64_t> IntegerOf(double x);

}  // namespace nam::plan
