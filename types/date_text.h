#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nam {

/// What ParseDate and ParseTimestamp (types/value.h) read, of a date or timestamp that is written in one of
/// PostgreSQL's other ways: `Jan 5, 2024`, `08-Jan-1999`, `1/8/1999` (the month first), `990108`, `J2451187`,
/// `epoch`, with a day of the week, `10:00 PM` or `101112` as the time. Anything else stays as it is, and so
/// does what stands behind the time, a zone.
std::string CanonicalDateText(std::string_view text);

/// `today`, `tomorrow`, `yesterday`, which a time may follow, and `now`, by the time that it is; in
/// microseconds since 1970. Anything else stays as it is.
std::string DateTextAt(std::string_view text, int64_t now_us);

}  // namespace nam
