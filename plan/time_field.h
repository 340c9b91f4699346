#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// The fields of EXTRACT and date_trunc: the same for the reference and for vectors.
namespace nam::plan {

enum class TimeField : uint8_t {
  kMicrosecond,
  kMillisecond,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kQuarter,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
  kEpoch,
  kDayOfWeek,
  kIsoDayOfWeek,
  kDayOfYear,
  kIsoYear,
};
/// Parses names of EXTRACT and date_trunc, in any case.
std::optional<TimeField> TimeFieldOf(std::string_view name);

/// A field of a timestamp. Parts of seconds are in microseconds, and so is the epoch.
int64_t FieldOfTimestamp(TimeField field, int64_t us);
/// The timestamp without parts finer than the field. nullopt if the field cannot truncate, or if the result
/// is before the year 1.
std::optional<int64_t> TruncateTimestamp(TimeField field, int64_t us);
bool Truncates(TimeField field);

/// The ISO 8601 week of a day, and the year that it belongs to.
struct IsoWeek {
  int32_t year;
  int32_t week;
};
IsoWeek IsoWeekOf(int64_t day);

}  // namespace nam::plan
