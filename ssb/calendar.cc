#include "ssb/calendar.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "types/calendar_names.h"
#include "types/date.h"

namespace nam::ssb {
namespace {

static_assert(DaysFromCivil({1992, 1, 1}) == kFirstDay);
static_assert(DaysFromCivil({1998, 8, 2}) == kFirstDay + kOrderDays - 1);

std::string_view SellingSeason(int month) {
  if (month <= 3) return "Winter";
  if (month == 4) return "Spring";
  if (month <= 8) return "Summer";
  if (month <= 10) return "Fall";
  return "Christmas";
}

// The original generator's ten holidays: the same days every year.
bool IsHoliday(int month, int day) {
  constexpr std::array<std::array<int, 2>, 10> kHolidays = {
      {{1, 1}, {2, 20}, {4, 20}, {5, 20}, {7, 20}, {8, 20}, {9, 20}, {10, 20}, {11, 20}, {12, 24}}};
  return std::any_of(kHolidays.begin(), kHolidays.end(),
                     [&](const auto& holiday) { return holiday[0] == month && holiday[1] == day; });
}

CalendarDay MakeDay(int64_t days) {
  const auto [year, month, day] = CivilFromDays(days);
  const int week_day = WeekDay(days);
  const auto day_of_year = static_cast<int32_t>(days - DaysFromCivil({year, 1, 1}) + 1);
  return {
      .date_key = year * 10000 + month * 100 + day,
      .date = absl::StrFormat("%s %d, %d", kMonthNames[month - 1], day, year),
      .day_of_week = kWeekDayNames[week_day],
      .month = kMonthNames[month - 1],
      .year = year,
      .year_month_num = year * 100 + month,
      .year_month = absl::StrFormat("%s%d", kMonthNames[month - 1].substr(0, kShortNameLetters), year),
      .day_num_in_week = week_day + 1,
      .day_num_in_month = day,
      .day_num_in_year = day_of_year,
      .month_num_in_year = month,
      .week_num_in_year = day_of_year / 7 + 1,
      .selling_season = SellingSeason(month),
      .last_day_in_week = week_day == 6,
      .last_day_in_month = day == DaysInMonth(year, month),
      .holiday = IsHoliday(month, day),
      .weekday = week_day != 0 && week_day != 6,
  };
}

}  // namespace

std::span<const CalendarDay> Calendar() {
  static const std::vector<CalendarDay>& calendar = *[] {
    auto* days = new std::vector<CalendarDay>;
    for (int i = 0; i < kCalendarDays; ++i) days->push_back(MakeDay(kFirstDay + i));
    return days;
  }();
  return calendar;
}

}  // namespace nam::ssb
