#include "types/date_text.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "types/calendar_names.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int64_t kJulianDayOf1970 = 2'440'588;
/// An invalid hour: the reader reports it as out of range.
constexpr int64_t kNoHour = 99;
constexpr int32_t kNoYear = 0;  // an invalid year

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}
/// Digits, optionally with a point and more digits.
bool IsNumber(std::string_view text) {
  const size_t point = text.find('.');
  return IsDigits(text.substr(0, point)) &&
         (point == std::string_view::npos || IsDigits(text.substr(point + 1)));
}
bool IsLetters(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c));
  });
}
/// Parses up to nine digits.
int64_t NumberOf(std::string_view digits) {
  int64_t n = 0;
  for (const char c : digits) n = n * 10 + (c - '0');
  return n;
}

/// Matches a name, or its first three letters.
std::optional<int> Named(std::string_view word, std::span<const std::string_view> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const bool whole = word.size() == names[i].size(), brief = word.size() == kShortNameLetters;
    if ((whole || brief) && BeginsWithWord(names[i], word)) return static_cast<int>(i);
  }
  return std::nullopt;
}
std::optional<int> MonthOf(std::string_view word) {
  if (word == "sept") return 9;
  const std::optional<int> month = Named(word, kMonthNames);
  return month ? std::optional(*month + 1) : std::nullopt;
}
bool IsWeekDay(std::string_view word) {
  return Named(word, kWeekDayNames) || word == "tues" || word == "weds" || word == "thur" || word == "thurs";
}

/// A two-digit year is one of 1970 to 2069.
int64_t YearOf(std::string_view digits) {
  const int64_t year = NumberOf(digits);
  if (digits.size() > 2) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

struct Reading {
  std::string date;  // YYYY-MM-DD
  std::string time;  // as written, except for the rest below
  std::optional<bool> afternoon;
  bool before_christ = false;
  std::string behind;                // a zone
  int month = 0;                     // by name
  std::vector<std::string> numbers;  // of a date whose month is a separate word
  bool other = false;                // not in ParseTimestamp's format
};

std::string DateOf(int64_t year, int64_t month, int64_t day) {
  return absl::StrFormat("%04d-%02d-%02d", year, month, day);
}

/// Three fields separated by `-`, `/` or `.`. False otherwise.
bool ParseFields(std::string_view token, Reading& reading) {
  const size_t first = token.find_first_of("-/.");
  if (first == std::string_view::npos) return false;
  const size_t second = token.find(token[first], first + 1);
  if (second == std::string_view::npos) return false;
  const std::string_view a = token.substr(0, first), b = token.substr(first + 1, second - first - 1),
                         c = token.substr(second + 1);
  constexpr size_t kMostDigits = 9;
  if (std::max({a.size(), b.size(), c.size()}) > kMostDigits) return false;
  const auto word = [](std::string_view field) { return IsLetters(field) ? MonthOf(field) : std::nullopt; };
  if (IsDigits(a) && IsDigits(b) && IsDigits(c)) {
    if (a.size() > 2 && token[first] != '.') {  // already in the reader's format
      reading.date = std::string(token);
      return true;
    }
    reading.date = a.size() > 2 ? DateOf(NumberOf(a), NumberOf(b), NumberOf(c))
                                : DateOf(YearOf(c), NumberOf(a), NumberOf(b));
  } else if (word(b) && IsDigits(a) && IsDigits(c)) {
    reading.date =
        a.size() > 2 ? DateOf(NumberOf(a), *word(b), NumberOf(c)) : DateOf(YearOf(c), *word(b), NumberOf(a));
  } else if (word(a) && IsDigits(b) && IsDigits(c)) {
    reading.date = DateOf(YearOf(c), *word(a), NumberOf(b));
  } else {
    return false;
  }
  reading.other = true;
  return true;
}

/// A number, perhaps with a fraction: a part of a date, or a time.
bool ParseDigits(std::string_view token, Reading& reading) {
  constexpr size_t kShortDate = 6, kDate = 8, kTime = 6, kShortTime = 4;
  const bool dated = !reading.date.empty() || (reading.month != 0 && reading.numbers.size() == 2);
  const size_t whole = std::min(token.find('.'), token.size());
  const bool fraction = whole < token.size();
  if (dated && reading.time.empty() && (whole == kTime || whole == kShortTime)) {
    const std::string digits(token);
    reading.time = absl::StrCat(digits.substr(0, 2), ":", digits.substr(2, 2));
    if (token.size() > kShortTime) absl::StrAppend(&reading.time, ":", digits.substr(4));
    reading.other = true;
  } else if (dated || fraction) {
    return false;
  } else if (token.size() == kDate) {
    reading.date = std::string(token);
  } else if (token.size() == kShortDate) {
    reading.date =
        DateOf(YearOf(token.substr(0, 2)), NumberOf(token.substr(2, 2)), NumberOf(token.substr(4)));
    reading.other = true;
  } else if (token.size() <= 4) {
    reading.numbers.emplace_back(token);
  } else {
    return false;
  }
  return true;
}

/// `1999.008`, `1999-008`: the day of a year.
bool ParseDayOfYear(std::string_view token, Reading& reading) {
  constexpr size_t kYear = 4, kLength = 8;
  const std::string_view year = token.substr(0, kYear),
                         behind = token.substr(std::min(kYear + 1, token.size()));
  if (token.size() != kLength || !IsDigits(year) || !IsDigits(behind) || !reading.date.empty()) return false;
  if (token[kYear] != '.' && token[kYear] != '-') return false;
  constexpr int64_t kMostDays = 366;  // in any year, as in PostgreSQL
  const int64_t day = NumberOf(behind);
  if (day < 1 || day > kMostDays) return false;
  const CivilDate date = CivilFromDays(DaysFromCivil({static_cast<int32_t>(NumberOf(year)), 1, 1}) + day - 1);
  reading.date = DateOf(date.year, date.month, date.day);
  reading.other = true;
  return true;
}

/// `20240102T101112`
bool ParseDateAndTime(std::string_view token, Reading& reading) {
  const size_t t = token.find('t');
  return t != std::string_view::npos && reading.date.empty() && IsDigits(token.substr(0, t)) &&
         IsNumber(token.substr(t + 1)) && ParseDigits(token.substr(0, t), reading) && !reading.date.empty() &&
         ParseDigits(token.substr(t + 1), reading);
}

bool ParseWord(std::string_view token, Reading& reading) {
  if (const std::optional<int> month = MonthOf(token); month && reading.month == 0) {
    reading.month = *month;
  } else if (token == "am" || token == "pm") {
    if (reading.afternoon) return false;
    reading.afternoon = token == "pm";
  } else if (token == "bc") {
    reading.before_christ = true;
  } else if (token != "ad" && !IsWeekDay(token)) {
    return false;
  }
  reading.other = true;
  return true;
}

bool ParseClockTime(std::string_view token, Reading& reading) {
  if (!reading.time.empty()) return false;
  const size_t end = std::min(token.find_first_not_of("0123456789:."), token.size());
  reading.time = std::string(token.substr(0, end));
  const std::string_view behind = token.substr(end);
  return behind.empty() || (behind != "am" && behind != "pm") || ParseWord(behind, reading);
}

bool ParseJulianDay(std::string_view token, Reading& reading) {
  constexpr size_t kMostDigits = 9;
  if (token.size() < 2 || token[0] != 'j' || !IsDigits(token.substr(1)) || token.size() > kMostDigits + 1 ||
      !reading.date.empty())
    return false;
  const int64_t day = NumberOf(token.substr(1)) - kJulianDayOf1970;
  const bool within = day >= kLeastDay && day <= kGreatestDay;
  const CivilDate date = within ? CivilFromDays(day) : CivilDate{kNoYear, 1, 1};
  reading.date = DateOf(date.year, date.month, date.day);
  reading.other = true;
  return true;
}

/// A month by name and two numbers: the year has more digits, or comes last.
bool JoinDate(Reading& reading) {
  if (reading.month == 0) return reading.numbers.empty();
  if (!reading.date.empty() || reading.numbers.size() != 2) return false;
  std::string &a = reading.numbers[0], &b = reading.numbers[1];
  if (a.size() > 2) std::swap(a, b);
  if (a.size() > 2) return false;
  reading.date = DateOf(YearOf(b), reading.month, NumberOf(a));
  return true;
}

/// Converts to 24 hours.
bool MoveToAfternoon(Reading& reading) {
  if (!reading.afternoon) return true;
  if (reading.time.empty()) reading.time = "00:00";
  const size_t colon = reading.time.find(':');
  if (colon == std::string::npos || colon == 0 || colon > 2) return false;
  const int64_t hour = NumberOf(std::string_view(reading.time).substr(0, colon));
  const int64_t moved = hour > 12 ? kNoHour : hour % 12 + (*reading.afternoon ? 12 : 0);
  reading.time = absl::StrFormat("%02d", moved) + reading.time.substr(colon);
  return true;
}

}  // namespace

std::string CanonicalDateText(std::string_view text) {
  const std::string small = absl::AsciiStrToLower(std::string(text));
  Reading reading;
  reading.other = small.find(',') != std::string::npos;
  constexpr char kBetween[] = " \t\n\v\f\r,";
  for (size_t at = small.find_first_not_of(kBetween); at != std::string::npos;) {
    const size_t end = std::min(small.find_first_of(kBetween, at), small.size());
    const std::string_view token = std::string_view(small).substr(at, end - at);
    // After the time comes text that only its reader interprets.
    const bool taken = (token.find(':') != std::string_view::npos && IsDigits(token.substr(0, 1)) &&
                        token.find_first_of("-/t") > token.find(':') && ParseClockTime(token, reading)) ||
                       ParseDayOfYear(token, reading) || ParseDateAndTime(token, reading) ||
                       (IsNumber(token) && ParseDigits(token, reading)) ||
                       (IsLetters(token) && ParseWord(token, reading)) || ParseJulianDay(token, reading) ||
                       (reading.date.empty() && reading.time.empty() && ParseFields(token, reading));
    if (!taken) {
      if (token == "epoch" && reading.date.empty()) {
        reading.date = DateOf(1970, 1, 1);
        reading.other = true;
      } else if (!reading.time.empty()) {
        absl::StrAppend(&reading.behind, " ", std::string(text.substr(at, end - at)));
      } else {
        return std::string(text);
      }
    }
    at = small.find_first_not_of(kBetween, end);
  }
  const bool read = reading.other && JoinDate(reading) && MoveToAfternoon(reading) && !reading.date.empty();
  if (!read) return std::string(text);
  if (reading.before_christ) reading.date = DateOf(kNoYear, 1, 1);
  return absl::StrCat(reading.date, reading.time.empty() ? "" : " ", reading.time, reading.behind);
}

std::string DateTextAt(std::string_view text, int64_t now_us) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return std::string(text);
  const size_t end = std::min(text.find_first_of(kBlanks, first), text.size());
  const std::string word = absl::AsciiStrToLower(std::string(text.substr(first, end - first)));
  const bool alone = text.find_first_not_of(kBlanks, end) == std::string_view::npos;
  if (word == "now" && alone) return Value::Timestamp(now_us).ToString();
  const int days = word == "today" ? 0 : word == "tomorrow" ? 1 : word == "yesterday" ? -1 : 2;
  if (days == 2) return std::string(text);
  const int64_t today = now_us / kMicrosecondsPerDay - (now_us % kMicrosecondsPerDay < 0);
  return Value::Date(today + days).ToString() + std::string(text.substr(end));
}

}  // namespace nam
