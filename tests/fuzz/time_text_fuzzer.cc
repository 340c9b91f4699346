// Texts of intervals, dates, timestamps and double precision: a value that is read is printed, and read as
// the same.

#include <string>

#include "base/check.h"
#include "tests/fuzz/fuzz.h"
#include "types/value.h"

namespace nam::fuzz {

std::vector<std::string> Seeds() {
  return {"1 year 2 months 3 days 04:05:06.789",
          "P1Y2M3DT4H5M6.5S",
          "-1.5 hours ago",
          "@ 1 decade 3 mins",
          "2020-02-29 23:59:60.9999999",
          "20200131",
          "2020/1/5T1:2:3",
          "1e-308",
          "-Infinity",
          "NaN",
          "123456.789e10",
          "2147483647 years"};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto field = static_cast<IntervalField>(data[0] % 7);
  if (const auto interval = ParseInterval(text, field); interval.ok()) {
    NAM_CHECK(UnpackInterval(PackInterval(*interval)) == *interval);
    const auto again = ParseInterval(IntervalText(*interval));
    // The least number of microseconds has no positive one that a text could give a sign.
    if (again.ok()) NAM_CHECK(*again == *interval);
    NAM_CHECK(again.ok() || interval->us == INT64_MIN);
    (void)AddToTimestamp(0, *interval, 1);
    (void)ScaleInterval(*interval, 0.3, false);
    (void)SpanOf(*interval);
  }
  for (const bool narrow : {false, true}) {
    const auto x = ParseReal(text, narrow);
    if (!x.ok()) continue;
    const auto again = ParseReal(RealText(*x, narrow), narrow);
    NAM_CHECK(again.ok() && OrderedBits(*again) == OrderedBits(*x));
    NAM_CHECK(OrderedBits(FromOrderedBits(OrderedBits(*x))) == OrderedBits(*x));
  }
  if (const auto us = ParseTimestamp(text); us.ok())
    NAM_CHECK(ParseTimestamp(Value::Timestamp(*us).ToString()).value() == *us);
  if (const auto day = ParseDate(text); day.ok())
    NAM_CHECK(ParseDate(Value::Date(*day).ToString()).value() == *day);
  return 0;
}
