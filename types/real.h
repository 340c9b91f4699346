#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Floating-point numbers in values: 64 bits that are ordered like the numbers, so that code that compares,
/// groups or sorts integers works for them. There is one NaN, the greatest number, and one zero.
namespace nam {

int64_t OrderedBits(double x);
double FromOrderedBits(int64_t bits);

/// The shortest text that reads as the same number, as in PostgreSQL; `real`: 32 bits.
std::string RealText(double x, bool real);

/// Parses a number with optional exponent, NaN, [±]Infinity or inf, and surrounding blanks. Rounds to 32 bits
/// if `real`. INVALID_ARGUMENT if the text is invalid, OUT_OF_RANGE if the number is too large or too close
/// to 0.
absl::StatusOr<double> ParseReal(std::string_view text, bool real);

}  // namespace nam
