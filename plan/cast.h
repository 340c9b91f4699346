#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "plan/expression.h"

namespace nam::plan {

/// Evaluates a kCast of a value that is not NULL, by PostgreSQL's rules: numbers that lose decimals are
/// rounded half away from zero, double precision that becomes an integer half to even. Out of range is 22003
/// or 22008; invalid text is 22P02 or 22007.
absl::StatusOr<Value> Cast(const Expr& e, Value from);
/// 22003, for a kCast to a decimal of fewer than 38 digits.
absl::Status NumericFieldOverflow(const Expr& e);
/// Whether the cast exists.
bool CastExists(const Type& from, const Type& to);

/// The nearest double precision for any number.
double RealOf(__int128 unscaled, int scale);
/// The nearest real, as double precision. nullopt if it is too large or too near to 0.
std::optional<double> NarrowedToReal(double x);
/// An integer, half to even. nullopt beyond 64 bits.
std::optional<int64_t> IntegerOf(double x);

}  // namespace nam::plan
