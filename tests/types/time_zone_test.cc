#include "types/time_zone.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int64_t kHourUs = 3'600'000'000;

int64_t Us(const char* text) {
  return ParseTimestamp(text).value();
}

TEST(TimeZoneTest, Names) {
  for (const char* name : {"UTC", "utc", "Z", "Europe/Berlin", "europe/berlin", "AMERICA/NEW_YORK", "+02",
                           "UTC-3", "<+02>-02", "EST5EDT", "Etc/GMT+5", "cet"})
    EXPECT_TRUE(TimeZone::Find(name)) << name;
  // Some of them would be files.
  for (const char* name : {"", "Europe/Nowhere", "/etc/localtime", "../zoneinfo/UTC", "file:/etc/localtime",
                           "localtime", "+17", "x", "<+02", "Europe/Berlin;", "+02:60"})
    EXPECT_FALSE(TimeZone::Find(name)) << name;
  EXPECT_TRUE(TimeZone::Find("UTC")->fixed());
  EXPECT_FALSE(TimeZone::Find("Europe/Berlin")->fixed());
}

/// In names of zones a positive offset is to the west, in texts it is to the east.
TEST(TimeZoneTest, Signs) {
  EXPECT_EQ(TimeZone::Find("+02")->OffsetSeconds(0), -7200);
  EXPECT_EQ(TimeZone::Find("UTC-3")->OffsetSeconds(0), 10800);
  EXPECT_EQ(TimeZone::Find(NameOfOffset(19800))->OffsetSeconds(0), 19800);
  EXPECT_EQ(TimeZone::Find(NameOfOffset(-12600))->OffsetSeconds(0), -12600);
  EXPECT_EQ(SplitZone("2024-01-01 10:00+02").zone->OffsetSeconds(0), 7200);
  EXPECT_EQ(SplitZone("2024-01-01 10:00-0530").zone->OffsetSeconds(0), -19800);
}

TEST(TimeZoneTest, SkippedAndRepeatedTimes) {
  const TimeZone berlin = *TimeZone::Find("Europe/Berlin");
  EXPECT_EQ(berlin.UtcOf(Us("2024-03-31 02:30")), Us("2024-03-31 01:30"));
  EXPECT_EQ(berlin.UtcOf(Us("2024-10-27 02:30")), Us("2024-10-27 01:30"));
  EXPECT_EQ(berlin.LocalOf(Us("2024-10-27 00:30")), Us("2024-10-27 02:30"));
  EXPECT_EQ(berlin.LocalOf(Us("2024-10-27 01:30")), Us("2024-10-27 02:30"));
  EXPECT_EQ(berlin.Abbreviation(Us("2024-07-01")), "CEST");
}

TEST(TimeZoneTest, SplitsTexts) {
  struct {
    const char *text, *rest;
    int offset;
  } constexpr kCases[] = {
      {"2024-01-01 10:00:00Z", "2024-01-01 10:00:00", 0},
      {"2024-01-01 10:00 +5", "2024-01-01 10:00", 18000},
      {"2024-01-01 10:00utc", "2024-01-01 10:00", 0},
      {" 2024-01-01 10:00+02:30 ", "2024-01-01 10:00", 9000},
      {"2024-01-01 10:00 Asia/Tokyo", "2024-01-01 10:00", 32400},
      {"2024-01-01 10:00 pst", "2024-01-01 10:00", -28800},
  };
  for (const auto& c : kCases) {
    const ZonedText split = SplitZone(c.text);
    EXPECT_EQ(split.text, c.rest) << c.text;
    ASSERT_TRUE(split.zone) << c.text;
    EXPECT_EQ(split.zone->OffsetSeconds(0), c.offset) << c.text;
  }
  for (const char* text : {"2024-01-01", "2024-01-01 10:00", "10:00 PM", "Jan 5 2024", "", "x", "infinity"}) {
    const ZonedText split = SplitZone(text);
    EXPECT_FALSE(split.zone) << text;
    EXPECT_EQ(split.text, text);
    EXPECT_EQ(split.fault, ZonedText::Fault::kNone) << text;
  }
  EXPECT_EQ(SplitZone("2024-01-01 10:00 No/Where").fault, ZonedText::Fault::kUnknownZone);
  EXPECT_EQ(SplitZone("2024-01-01 10:00+16").fault, ZonedText::Fault::kOffsetOutOfRange);
}

/// A text with its offset names one moment, whatever the zone.
TEST(TimeZoneTest, TextsAreReadBack) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const char* const kNames[] = {"UTC",          "Europe/Berlin", "America/St_Johns",
                                "Asia/Kolkata", "Pacific/Apia",  "<-03:30>+03:30"};
  for (int i = 0; i < 5000; ++i) {
    const TimeZone zone = *TimeZone::Find(kNames[random() % std::size(kNames)]);
    const int64_t day = kLeastDay + 1 + static_cast<int64_t>(random() % (kGreatestDay - kLeastDay - 1));
    const int64_t us = day * kMicrosecondsPerDay + static_cast<int64_t>(random() % kMicrosecondsPerDay);
    const std::string text = TimestampTzText(us, zone);
    const ZonedText split = SplitZone(text);
    ASSERT_TRUE(split.zone) << text << " seed " << seed;
    EXPECT_EQ(split.zone->UtcOf(ParseTimestamp(split.text).value()), us) << text << " seed " << seed;
    // The local time leads back to that moment, or to one an hour or less away where clocks turn back.
    EXPECT_LE(std::abs(zone.UtcOf(zone.LocalOf(us)) - us), 24 * kHourUs) << text << " seed " << seed;
    if (zone.fixed()) {
      EXPECT_EQ(zone.UtcOf(zone.LocalOf(us)), us);
    }
  }
}

TEST(TimeZoneTest, Times) {
  EXPECT_EQ(ParseTime("10:11").value(), 10 * kHourUs + 660'000'000);
  EXPECT_EQ(ParseTime(" 10:11:12.5 ").value(), 10 * kHourUs + 672'500'000);
  EXPECT_EQ(ParseTime("101112").value(), 10 * kHourUs + 672'000'000);
  EXPECT_EQ(ParseTime("1011").value(), 10 * kHourUs + 660'000'000);
  EXPECT_EQ(ParseTime("24:00").value(), 24 * kHourUs);
  EXPECT_EQ(ParseTime("2024-05-05 10:00").value(), 10 * kHourUs);
  EXPECT_TRUE(absl::IsOutOfRange(ParseTime("24:00:01").status()));
  EXPECT_TRUE(absl::IsOutOfRange(ParseTime("10:60").status()));
  for (const char* text : {"", "x", "10", "10:", "2024-05-05x"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTime(text).status())) << text;
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const int64_t us = static_cast<int64_t>(random() % (kMicrosecondsPerDay + 1));
    EXPECT_EQ(ParseTime(Value::Time(us).ToString()).value(), us);
  }
}

}  // namespace
}  // namespace nam
