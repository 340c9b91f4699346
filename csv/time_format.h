#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace nam::csv {

/// Formats of dates and timestamps, as strptime's: %Y %y, %m %b %B, %d, %H %I %M %S, %f for a second's
/// fraction, %p for AM and PM, %a %A for the day of the week, %%. Numbers may have fewer digits, and names
/// any case. A year %y is of 1969 to 2068.
///
/// 22023 for what is no such format.
absl::Status CheckTimeFormat(std::string_view format);

/// The date or timestamp as PostgreSQL's input reads it; nullopt if the text is none of the format.
std::optional<std::string> ReadByFormat(std::string_view text, std::string_view format);

}  // namespace nam::csv
