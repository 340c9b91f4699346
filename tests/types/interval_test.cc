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

/// Days and microseconds move back where they came from.
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
