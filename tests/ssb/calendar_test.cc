#include "ssb/calendar.h"

#include <map>
#include <set>

#include "gtest/gtest.h"

namespace nam::ssb {
namespace {

const CalendarDay& Day(int date_key) {
  for (const CalendarDay& day : Calendar()) {
    if (day.date_key == date_key) return day;
  }
  ADD_FAILURE() << date_key << " is not in the calendar";
  return Calendar().front();
}

TEST(CalendarTest, CoversSevenYearsLessADay) {
  ASSERT_EQ(Calendar().size(), 2556u);
  EXPECT_EQ(Calendar().front().date_key, 19920101);
  EXPECT_EQ(Calendar().back().date_key, 19981230);
  std::map<int, int> days;
  for (const CalendarDay& day : Calendar()) ++days[day.year];
  EXPECT_EQ(days,
            (std::map<int, int>{
                {1992, 366}, {1993, 365}, {1994, 365}, {1995, 365}, {1996, 366}, {1997, 365}, {1998, 364}}));
}

TEST(CalendarTest, LeapDays) {
  EXPECT_TRUE(Day(19920229).last_day_in_month);
  EXPECT_TRUE(Day(19960229).last_day_in_month);
  EXPECT_FALSE(Day(19960228).last_day_in_month);
  EXPECT_TRUE(Day(19930228).last_day_in_month);
  EXPECT_EQ(Day(19920301).day_num_in_year, 61);
  EXPECT_EQ(Day(19930301).day_num_in_year, 60);
  EXPECT_EQ(Day(19961231).day_num_in_year, 366);
}

TEST(CalendarTest, KnownWeekDays) {
  EXPECT_EQ(Day(19920101).day_of_week, "Wednesday");
  EXPECT_EQ(Day(19920101).day_num_in_week, 4);
  EXPECT_EQ(Day(19960229).day_of_week, "Thursday");
  EXPECT_EQ(Day(19980802).day_of_week, "Sunday");
  EXPECT_FALSE(Day(19980802).weekday);
  EXPECT_EQ(Day(19981230).day_of_week, "Wednesday");
  EXPECT_TRUE(Day(19980801).last_day_in_week);
  EXPECT_FALSE(Day(19980801).weekday);
  EXPECT_TRUE(Day(19980803).weekday);
}

TEST(CalendarTest, WholeRow) {
  const CalendarDay& day = Day(19971224);
  EXPECT_EQ(day.date, "December 24, 1997");
  EXPECT_EQ(day.month, "December");
  EXPECT_EQ(day.year, 1997);
  EXPECT_EQ(day.year_month_num, 199712);
  EXPECT_EQ(day.year_month, "Dec1997");
  EXPECT_EQ(day.day_num_in_month, 24);
  EXPECT_EQ(day.day_num_in_year, 358);
  EXPECT_EQ(day.month_num_in_year, 12);
  EXPECT_EQ(day.week_num_in_year, 52);
  EXPECT_EQ(day.selling_season, "Christmas");
  EXPECT_TRUE(day.holiday);
  EXPECT_FALSE(day.last_day_in_month);
  EXPECT_FALSE(day.last_day_in_week);
  EXPECT_TRUE(Day(19971227).last_day_in_week) << "a Saturday";
  EXPECT_FALSE(Day(19971228).last_day_in_week) << "a Sunday";
}

TEST(CalendarTest, DomainsAndOrder) {
  std::set<std::string_view> seasons, week_days, months;
  int previous_key = 0, previous_week_day = 3;
  for (const CalendarDay& day : Calendar()) {
    EXPECT_GT(day.date_key, previous_key);
    EXPECT_EQ(day.day_num_in_week, previous_week_day % 7 + 1) << day.date;
    EXPECT_GE(day.week_num_in_year, 1);
    EXPECT_LE(day.week_num_in_year, 53);
    previous_key = day.date_key;
    previous_week_day = day.day_num_in_week;
    seasons.insert(day.selling_season);
    week_days.insert(day.day_of_week);
    months.insert(day.month);
  }
  EXPECT_EQ(seasons, (std::set<std::string_view>{"Winter", "Spring", "Summer", "Fall", "Christmas"}));
  EXPECT_EQ(week_days.size(), 7u);
  EXPECT_EQ(months.size(), 12u);
}

}  // namespace
}  // namespace nam::ssb
