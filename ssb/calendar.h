#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nam::ssb {

/// 1992-01-01, the benchmark's first day, as days since 1970-01-01.
inline constexpr int64_t kFirstDay = 8035;
/// The specification's row count of the date table. Seven years with two leap days are 2,557 days, so the
/// calendar ends on 1998-12-30. No order date (until 1998-08-02) or commit date (90 days later) needs more.
inline constexpr int kCalendarDays = 2556;
/// Orders fall on the first 2,406 days: 1992-01-01 … 1998-08-02.
inline constexpr int kOrderDays = 2406;

/// A row of the date table. Weekdays are the real ones (the original generator's are one day late); weeks are
/// numbered as in the original (day of the year / 7 + 1), because Q1.3 selects one.
struct CalendarDay {
  int32_t date_key;  // yyyymmdd
  std::string date;  // `January 1, 1992`
  std::string_view day_of_week;
  std::string_view month;
  int32_t year;
  int32_t year_month_num;   // yyyymm
  std::string year_month;   // `Jan1992`
  int32_t day_num_in_week;  // 1 is Sunday
  int32_t day_num_in_month;
  int32_t day_num_in_year;
  int32_t month_num_in_year;
  int32_t week_num_in_year;
  std::string_view selling_season;
  bool last_day_in_week;
  bool last_day_in_month;
  bool holiday;
  bool weekday;  // Monday … Friday
};

/// The kCalendarDays days in order; lives forever.
std::span<const CalendarDay> Calendar();

}  // namespace nam::ssb
