#include "types/date_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr const char* kMonths[] = {"Jan", "FEB", "march", "Apr", "May", "june",
                                   "jul", "AUG", "Sept",  "Oct", "Nov", "december"};

TEST(DateText, EveryWayToWriteADayIsThatDay) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const int64_t day = static_cast<int64_t>(random() % 8000000) % (kGreatestDay - kLeastDay) + kLeastDay;
    const CivilDate d = CivilFromDays(day);
    const char* month = kMonths[d.month - 1];
    const int second = static_cast<int>(random() % 86400), hour = second / 3600, minute = second / 60 % 60;
    const std::string date = Value::Date(day).ToString();
    std::vector<std::string> ways = {
        absl::StrFormat("%s %d %04d", month, d.day, d.year),
        absl::StrFormat(" %02d  %s, %04d ", d.day, month, d.year),
        absl::StrFormat("%04d %s %d", d.year, month, d.day),
        absl::StrFormat("%02d-%s-%04d", d.day, month, d.year),
        absl::StrFormat("%s-%02d-%04d", month, d.day, d.year),
        absl::StrFormat("%d/%d/%04d", d.month, d.day, d.year),
        absl::StrFormat("J%d", day + 2440588),
        date,
    };
    if (d.year >= 1970 && d.year < 2070) {
      ways.push_back(absl::StrFormat("%02d%02d%02d", d.year % 100, d.month, d.day));
      ways.push_back(absl::StrFormat("%d/%d/%02d", d.month, d.day, d.year % 100));
    }
    for (const std::string& way : ways) {
      EXPECT_EQ(ParseDate(CanonicalDateText(way)).value_or(kLeastDay - 1), day) << way;
      const std::string clock = absl::StrFormat("%s %d:%02d:%02d %s", way, hour % 12 == 0 ? 12 : hour % 12,
                                                minute, second % 60, hour < 12 ? "am" : "PM");
      const int64_t us = day * kMicrosecondsPerDay + int64_t{1000000} * second;
      EXPECT_EQ(ParseTimestamp(CanonicalDateText(clock)).value_or(0), us) << clock;
      const std::string digits = absl::StrFormat("%s %02d%02d%02d", way, hour, minute, second % 60);
      EXPECT_EQ(ParseTimestamp(CanonicalDateText(digits)).value_or(0), us) << digits;
    }
  }
}

TEST(DateText, AnythingElseStaysAsItIs) {
  for (const char* text :
       {"", " ", "2024-01-02", "2024-01-02 10:11:12.5", "20240102", "10:11", "Jan", "Jan 5", "Foo 5 2024",
        "2024-13-01", "1-2", "a", "Jan Feb 2024", "2024-01-02 Jan 5 2024"})
    EXPECT_EQ(CanonicalDateText(text), text);
  EXPECT_EQ(CanonicalDateText("Jan 5 2024 10:11 PM Europe/Berlin"), "2024-01-05 22:11 Europe/Berlin");
}

TEST(DateText, DaysByTheirWords) {
  const int64_t now = ParseTimestamp("2024-02-28 23:59:58.5").value();
  EXPECT_EQ(DateTextAt("today", now), "2024-02-28");
  EXPECT_EQ(DateTextAt(" Tomorrow ", now), "2024-02-29 ");
  EXPECT_EQ(DateTextAt("yesterday 10:00", now), "2024-02-27 10:00");
  EXPECT_EQ(DateTextAt("NOW", now), "2024-02-28 23:59:58.5");
  EXPECT_EQ(DateTextAt("now 10:00", now), "now 10:00");
  EXPECT_EQ(DateTextAt("2024-01-01", now), "2024-01-01");
}

}  // namespace
}  // namespace nam
