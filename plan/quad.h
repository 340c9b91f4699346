#pragma once

#include <optional>

namespace nam::plan {

/// 113 bits of precision, about 34 digits: for roots, powers and logarithms of decimals, with the same
/// results on every server.
__extension__ using Quad = __float128;

Quad QuadOf(__int128 unscaled, int scale);
/// Rounded half away from zero to `scale` decimals; nullopt beyond 38 digits.
std::optional<__int128> DecimalOf(Quad x, int scale);

Quad SquareRoot(Quad x);        // x ≥ 0
Quad NaturalLogarithm(Quad x);  // x > 0
Quad Exponential(Quad x);       // |x| ≤ 11000
/// `x` to an integral power.
Quad WholePower(Quad x, __int128 exponent);
extern const Quad kLn10;

}  // namespace nam::plan
