#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>

#include "sql/expression_builder.h"
#include "types/date.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// More months or days than this leave the calendar from any date.
constexpr int64_t kFarAway = 5'000'000;

void SkipSpace(std::string_view& text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0) text.remove_prefix(1);
}

/// False unless `text` starts with a whole number; numbers far away all become kFarAway.
bool TakeNumber(std::string_view& text, int64_t* number) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  size_t digits = 0;
  int64_t value = 0;
  for (; digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0; ++digits) {
    value = std::min(value * 10 + (text[digits] - '0'), kFarAway);
  }
  text.remove_prefix(digits);
  *number = negative ? -value : value;
  return digits > 0;
}

std::string TakeWord(std::string_view& text) {
  std::string word;
  while (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0) {
    word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(text[0]))));
    text.remove_prefix(1);
  }
  return word;
}

bool AddField(Interval* interval, int64_t number, const std::string& unit) {
  const auto is = [&](std::string_view singular) {
    return unit == singular || unit == std::string(singular) + "s";
  };
  if (is("year"))
    interval->months += 12 * number;
  else if (is("month") || unit == "mon" || unit == "mons")
    interval->months += number;
  else if (is("week"))
    interval->days += 7 * number;
  else if (is("day"))
    interval->days += number;
  else
    return false;
  return true;
}

/// Units of PostgreSQL that are no number of days or months, or that nobody has asked for.
bool IsOtherUnit(std::string_view unit) {
  constexpr std::string_view kOthers[] = {"microsecond", "millisecond", "second",  "sec",      "s",
                                          "minute",      "min",         "m",       "hour",     "hr",
                                          "h",           "decade",      "century", "centurie", "millennium"};
  if (unit.size() > 1 && unit.back() == 's') unit.remove_suffix(1);
  return std::find(std::begin(kOthers), std::end(kOthers), unit) != std::end(kOthers);
}

const char* UnitName(IntervalUnit unit) {
  return unit == IntervalUnit::kYear ? "year" : unit == IntervalUnit::kMonth ? "month" : "day";
}

}  // namespace

absl::StatusOr<Interval> ParseInterval(std::string_view text, IntervalUnit unit, int position) {
  const auto bad = [&, text] {
    return UserError(
        sqlstate::kBadDate, "invalid interval: " + Quote(text), position,
        "write interval '3' month, or interval '1 year 2 months'; units are year, month, week, day");
  };
  Interval interval;
  std::string_view left = text;
  SkipSpace(left);
  if (left.empty()) return bad();
  for (int fields = 0; !left.empty(); ++fields) {
    int64_t number = 0;
    if (fields == 8 || !TakeNumber(left, &number)) return bad();
    SkipSpace(left);
    std::string word = TakeWord(left);
    if (unit != IntervalUnit::kNone) {
      if (!word.empty() || !left.empty()) return bad();
      word = UnitName(unit);
    }
    if (IsOtherUnit(word)) {
      return Refusal("intervals of hours, minutes and seconds are not supported", position,
                     "units are year, month, week, day");
    }
    if (!AddField(&interval, number, word)) return bad();
    SkipSpace(left);
  }
  return interval;
}

absl::StatusOr<Value> AddInterval(const Value& date, const Interval& interval, int sign, int position) {
  const CivilDate from = CivilFromDays(static_cast<int64_t>(date.number));
  const int64_t month = int64_t{from.year} * 12 + (from.month - 1) + sign * interval.months;
  if (month < 12 || month >= int64_t{10000} * 12) return DateOutOfRange(position);
  CivilDate to{static_cast<int32_t>(month / 12), static_cast<int32_t>(month % 12) + 1, from.day};
  to.day = std::min(to.day, DaysInMonth(to.year, to.month));
  const int64_t day = DaysFromCivil(to) + sign * interval.days;
  if (day < kLeastDay || day > kGreatestDay) return DateOutOfRange(position);
  return Value::Date(day);
}

}  // namespace nam::sql
