#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nam {

/// Converts a date or timestamp in PostgreSQL's other formats to the one of ParseDate and ParseTimestamp
/// (types/value.h): `Jan 5, 2024`, `08-Jan-1999`, `1/8/1999` (month first), `990108`, `J2451187`, `epoch`;
/// with a day of the week; with `10:00 PM` or `101112` as the time. Returns other text unchanged, and keeps
/// the rest after the time, a zone.
std::string CanonicalDateText(std::string_view text);

/// Resolves `today`, `tomorrow`, `yesterday`, optionally followed by a time, and `now`, at `now_us` in
/// microseconds since 1970. Returns other text unchanged.
std::string DateTextAt(std::string_view text, int64_t now_us);

}  // namespace nam
