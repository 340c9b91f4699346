#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam {

/// Parses `4GiB`, `512 MiB`, `64k`, `1.5g`, `4096`. Units are powers of 1024, never of 1000, so `GB` is
/// refused.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);
/// `4 GiB`, `1.5 GiB`, `700 B`: at most one decimal.
std::string FormatBytes(uint64_t bytes);

/// `6,001,215`.
std::string FormatCount(uint64_t count);
/// `1 memory server`, `2 memory servers`.
std::string CountOf(uint64_t count, std::string_view one);
/// `0:07`, `12:30`, `1:02:03`.
std::string FormatDuration(int64_t seconds);
/// Milliseconds with three decimals, for screen and JSON: `12.345`.
std::string FormatMilliseconds(double milliseconds);
/// The nearest number of three decimals, for JSON: 12.345.
double InThousandths(double number);

}  // namespace nam
