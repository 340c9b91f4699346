#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Floating point as values hold it: 64 bits whose order is that of the numbers, so that whatever compares,
/// groups or sorts numbers does the same with them. There is one NaN, which is the greatest, and one zero.
namespace nam {

int64_t OrderedBits(double x);
double FromOrderedBits(int64_t bits);

/// The shortest text that is read as the same number, as PostgreSQL prints it; `real`: of 32 bits.
std::string RealText(double x, bool real);

/// A number with an exponent if need be, NaN, [±]Infinity or inf; blanks around. Rounded to 32 bits if
/// `real`. INVALID_ARGUMENT if the text is none, OUT_OF_RANGE if it is too large or too near to 0.
absl::StatusOr<double> ParseReal(std::string_view text, bool real);

}  // namespace nam
