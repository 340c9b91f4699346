#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam {

/// A span of time. Months, days and microseconds are not converted into each other, because months and days
/// vary in length. Comparisons assume months of 30 days and days of 24 hours.
struct Interval {
  int32_t months = 0;
  int32_t days = 0;
  int64_t us = 0;
  bool operator==(const Interval&) const = default;
};

/// Packs into a value's 128 bits: months, days, microseconds from the top.
__int128 PackInterval(const Interval& interval);
Interval UnpackInterval(__int128 packed);

/// The microseconds that comparisons use.
__int128 SpanOf(const Interval& interval);

/// OUT_OF_RANGE if a part does not fit.
absl::StatusOr<Interval> MakeInterval(__int128 months, __int128 days, __int128 us);
absl::StatusOr<Interval> AddIntervals(const Interval& a, const Interval& b, int sign);
/// Carries fractions of months to days, and fractions of days to microseconds, as in PostgreSQL.
absl::StatusOr<Interval> ScaleInterval(const Interval& interval, double factor, bool divide);

/// `1 year 2 mons 3 days 04:05:06.5`, as PostgreSQL prints it.
std::string IntervalText(const Interval& interval);

enum class IntervalField : uint8_t { kNone, kYear, kMonth, kDay, kHour, kMinute, kSecond };
/// Parses `1 year 2 months`, `-3 days 04:05`, `1.5 hours ago`, ISO 8601 `P1Y2DT3H`; a number without a unit
/// counts `field`, or seconds. INVALID_ARGUMENT if it is not an interval, OUT_OF_RANGE if a part does not
/// fit.
absl::StatusOr<Interval> ParseInterval(std::string_view text, IntervalField field = IntervalField::kNone);

/// Adds an interval to a timestamp; clips the day to the month's last. OUT_OF_RANGE beyond the range of
/// timestamps.
absl::StatusOr<int64_t> AddToTimestamp(int64_t us, const Interval& interval, int sign);
/// The interval from `b` to `a` in years, months and days, like PostgreSQL's age().
Interval AgeOf(int64_t a, int64_t b);

}  // namespace nam
