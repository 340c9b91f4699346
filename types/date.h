#pragma once

#include <cstdint>

namespace nam {

/// A date is a count of days since 1970-01-01, proleptic Gregorian.
struct CivilDate {
  int32_t year;
  int32_t month;  // 1 … 12
  int32_t day;    // 1 … 31
};

constexpr int64_t DaysFromCivil(CivilDate d) {
  const int64_t y = d.month <= 2 ? int64_t{d.year} - 1 : d.year;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

constexpr CivilDate CivilFromDays(int64_t days) {
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t doe = z - era * 146097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const int64_t mp = (5 * doy + 2) / 153;
  const auto day = static_cast<int32_t>(doy - (153 * mp + 2) / 5 + 1);
  const auto month = static_cast<int32_t>(mp < 10 ? mp + 3 : mp - 9);
  return {static_cast<int32_t>(yoe + era * 400 + (month <= 2)), month, day};
}

/// The range of dates, and of timestamps within them: years 1 to 9999.
inline constexpr int64_t kLeastDay = DaysFromCivil({1, 1, 1});
inline constexpr int64_t kGreatestDay = DaysFromCivil({9999, 12, 31});

/// 0 is Sunday.
constexpr int WeekDay(int64_t days) {
  return static_cast<int>(((days % 7) + 11) % 7);
}

constexpr int DaysInMonth(int32_t year, int32_t month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[month - 1];
}

static_assert(DaysFromCivil({1970, 1, 1}) == 0 && WeekDay(0) == 4);
static_assert(DaysFromCivil({1992, 1, 1}) == 8035 && CivilFromDays(8035).year == 1992);

}  // namespace nam
