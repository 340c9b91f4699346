#include "types/interval.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1'000'000;

Interval AnyInterval() {
  const auto months = *rc::gen::oneOf(rc::gen::arbitrary<int32_t>(), rc::gen::inRange(-30, 30));
  const auto days = *rc::gen::oneOf(rc::gen::arbitrary<int32_t>(), rc::gen::inRange(-40, 40));
  const auto us =
      *rc::gen::oneOf(rc::gen::arbitrary<int64_t>(), rc::gen::inRange<int64_t>(-30 * kHour, 30 * kHour));
  return {months, days, us};
}

RC_GTEST_PROP(IntervalProperty, PackedAndPrintedItIsTheSame, ()) {
  const Interval interval = AnyInterval();
  RC_ASSERT(UnpackInterval(PackInterval(interval)) == interval);
  RC_ASSERT(ParseInterval(IntervalText(interval)).value() == interval);
}

RC_GTEST_PROP(IntervalProperty, ComparesBySpan, ()) {
  const Interval a = AnyInterval(), b = AnyInterval();
  const int order = Compare(Value::Span(a), Value::Span(b));
  RC_ASSERT(order == (SpanOf(a) < SpanOf(b) ? -1 : SpanOf(a) > SpanOf(b) ? 1 : 0));
}

/// Days and microseconds move back to the start.
RC_GTEST_PROP(IntervalProperty, MovesBack, ()) {
  const int64_t us = *rc::gen::inRange<int64_t>(kLeastDay, kGreatestDay) * kMicrosecondsPerDay +
                     *rc::gen::inRange<int64_t>(0, kMicrosecondsPerDay);
  Interval interval = AnyInterval();
  interval.months = 0;
  const auto there = AddToTimestamp(us, interval, 1);
  RC_PRE(there.ok());
  RC_ASSERT(AddToTimestamp(*there, interval, -1).value() == us);
}

TEST(IntervalTest, EqualWithOtherParts) {
  EXPECT_EQ(Compare(Value::Span({1, 0, 0}), Value::Span({0, 30, 0})), 0);
  EXPECT_EQ(Compare(Value::Span({0, 1, 0}), Value::Span({0, 0, 24 * kHour})), 0);
  EXPECT_LT(Compare(Value::Span({1, 0, 0}), Value::Span({0, 31, 0})), 0);
}

TEST(IntervalTest, Texts) {
  EXPECT_EQ(IntervalText({}), "00:00:00");
  EXPECT_EQ(IntervalText({14, -3, kHour}), "1 year 2 mons -3 days +01:00:00");
  EXPECT_EQ(IntervalText({-1, 0, -500'000}), "-1 mons -00:00:00.5");
  EXPECT_EQ(ParseInterval("5", IntervalField::kHour).value(), (Interval{0, 0, 5 * kHour}));
  EXPECT_EQ(ParseInterval("5").value(), (Interval{0, 0, 5'000'000}));
  EXPECT_TRUE(absl::IsOutOfRange(ParseInterval("3000000000 days").status()));
  EXPECT_TRUE(absl::IsOutOfRange(ParseInterval("04:60:00").status()));
  for (const char* text :
       {"", " ", "ago", "day", "1 day ago ago", "1 fortnight", "P", "P1", "PX", "1:2:x", "--1 day"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseInterval(text).status())) << text;
}

TEST(IntervalTest, PartsAreReadFromTheLast) {
  const auto text = [](const char* from) {
    const auto interval = ParseInterval(from);
    return interval.ok() ? IntervalText(*interval) : interval.status().ToString();
  };
  EXPECT_EQ(text("1-2"), "1 year 2 mons");
  EXPECT_EQ(text("-1-2"), "-1 years -2 mons");
  EXPECT_EQ(text("+1-2 ago"), "-1 years -2 mons");
  EXPECT_EQ(text("12:34.5"), "00:12:34.5");
  EXPECT_EQ(text("-12:34.5"), "-00:12:34.5");
  EXPECT_EQ(text("12:34"), "12:34:00");
  EXPECT_EQ(text("1-2 3 4:05"), "1 year 2 mons 3 days 04:05:00");
  EXPECT_EQ(text("3 -4:05:06.7"), "3 days -04:05:06.7");
  EXPECT_EQ(text("1 day, 2 hours"), "1 day 02:00:00");
  EXPECT_EQ(text("@ 1 day - 2 hours"), "1 day -02:00:00");
  EXPECT_EQ(text("1 c"), "100 years");
  EXPECT_EQ(text("2 mil 1 dec"), "2010 years");
  EXPECT_EQ(text("1h2m3s"), "01:02:03");
  EXPECT_EQ(text("1 second 2 milliseconds 3 microseconds"), "00:00:01.002003");
  EXPECT_EQ(text(".5 weeks 1.5 mons"), "1 mon 18 days 12:00:00");
  EXPECT_EQ(text("P0001-02-03T04:05:06"), "1 year 2 mons 3 days 04:05:06");
  EXPECT_EQ(text("P-1-2"), "-10 mons");
  EXPECT_EQ(text("PT04:05"), "04:05:00");
  EXPECT_EQ(text("P1Y2M3W4DT5H6M7.5S"), "1 year 2 mons 25 days 05:06:07.5");
  EXPECT_EQ(ParseInterval("3 4:05", IntervalField::kHour).value(), (Interval{0, 3, 4 * kHour + kHour / 12}));
  EXPECT_EQ(ParseInterval("1 day 5", IntervalField::kHour).value(), (Interval{0, 1, 5 * kHour}));
}

TEST(IntervalTest, NoPartIsThereTwice) {
  for (const char* text : {"2020-01-01",    "1 day 1 day",   "1 2",
                           "1 2 days",      "1:00 1:00",     "1 hour 1:00",
                           "1:00 1 second", "1 day-2 hours", "1.5 seconds 2 milliseconds",
                           "1-2 3 months",  "1 day/2",       "1 day2 hours",
                           "1-2-3",         "1. day",        "- day",
                           "1 day hour",    "1:2:3:4",       "1:2.5:3",
                           "P1-2-3-4",      "P1Y2-3",        "P1:2",
                           "PT1-2",         "1 qtr"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseInterval(text).status())) << text;
  for (const char* text : {"1-12", "1:60", "70:30.5", "1:2:61", "200000000 years", "3000000000-1",
                           "99999999999999999999999999999999 s"})
    EXPECT_TRUE(absl::IsOutOfRange(ParseInterval(text).status())) << text;
}

TEST(IntervalTest, MonthsKeepTheDayOrTakeTheLast) {
  const auto day = [](int32_t y, int32_t m, int32_t d) {
    return DaysFromCivil({y, m, d}) * kMicrosecondsPerDay;
  };
  EXPECT_EQ(AddToTimestamp(day(2020, 1, 31), {1, 0, 0}, 1).value(), day(2020, 2, 29));
  EXPECT_EQ(AddToTimestamp(day(2020, 3, 31), {1, 1, 0}, -1).value(), day(2020, 2, 28));
  EXPECT_FALSE(AddToTimestamp(day(9999, 12, 31), {0, 1, 0}, 1).ok());
  EXPECT_FALSE(AddToTimestamp(day(1, 1, 1), {0, 0, 1}, -1).ok());
  EXPECT_FALSE(AddIntervals({INT32_MAX, 0, 0}, {1, 0, 0}, 1).ok());
  EXPECT_FALSE(ScaleInterval({INT32_MAX, 0, 0}, 2, false).ok());
}

}  // namespace
}  // namespace nam
