#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "plan/time_field.h"
#include "types/calendar_names.h"
#include "types/date.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

constexpr int64_t kJulianDayOf1970 = 2'440'588;

constexpr const char* kRomanMonths[] = {"I",   "II",   "III", "IV", "V",  "VI",
                                        "VII", "VIII", "IX",  "X",  "XI", "XII"};

/// The pattern's keywords. Longer names precede their prefixes.
constexpr const char* kFormatKeywords[] = {
    "A.D.", "A.M.",  "AD",    "AM",   "B.C.", "BC",    "CC",    "DAY", "DDD",   "DD",   "DY",    "Day",
    "Dy",   "D",     "FF1",   "FF2",  "FF3",  "FF4",   "FF5",   "FF6", "FX",    "HH24", "HH12",  "HH",
    "IDDD", "ID",    "IW",    "IYYY", "IYY",  "IY",    "I",     "J",   "MI",    "MM",   "MONTH", "MON",
    "MS",   "Month", "Mon",   "OF",   "P.M.", "PM",    "Q",     "RM",  "SSSSS", "SSSS", "SS",    "TZH",
    "TZM",  "TZ",    "US",    "WW",   "W",    "Y,YYY", "YYYY",  "YYY", "YY",    "Y",    "a.d.",  "a.m.",
    "ad",   "am",    "b.c.",  "bc",   "cc",   "day",   "ddd",   "dd",  "dy",    "d",    "ff1",   "ff2",
    "ff3",  "ff4",   "ff5",   "ff6",  "fx",   "hh24",  "hh12",  "hh",  "iddd",  "id",   "iw",    "iyyy",
    "iyy",  "iy",    "i",     "j",    "mi",   "mm",    "month", "mon", "ms",    "of",   "p.m.",  "pm",
    "q",    "rm",    "sssss", "ssss", "ss",   "tzh",   "tzm",   "tz",  "us",    "ww",   "w",     "y,yyy",
    "yyyy", "yyy",   "yy",    "y",
};

std::string_view FormatKeywordAt(std::string_view pattern) {
  for (const std::string_view keyword : kFormatKeywords) {
    if (pattern.starts_with(keyword)) return keyword;
  }
  return {};
}

/// `st`, `nd`, `rd`, `th` after a number.
std::string_view OrdinalOf(std::string_view number) {
  const char last = number.empty() ? '0' : number.back();
  const bool teen = number.size() > 1 && number[number.size() - 2] == '1';
  if (teen || last == '0' || last > '3' || last < '0') return "th";
  return last == '1' ? "st" : last == '2' ? "nd" : "rd";
}

class TimeFormatter {
 public:
  TimeFormatter(const Value& time, const TimeZone* zone) {
    if (time.type.kind == TypeKind::kInterval) {
      const Interval interval = time.interval();
      civil_ = {interval.months / 12, interval.months % 12, interval.days};
      us_ = interval.us;
      of_calendar_ = false;
      return;
    }
    auto number = static_cast<int64_t>(time.number);
    if (zone != nullptr) {
      offset_ = zone->OffsetSeconds(number);
      abbreviation_ = zone->Abbreviation(number);
      number = zone->LocalOf(number);
    }
    if (time.type.kind == TypeKind::kDate) {
      day_ = number;
    } else if (time.type.kind == TypeKind::kTime) {
      us_ = number;
      time_ = true;
    } else {
      day_ = number / kMicrosecondsPerDay - (number % kMicrosecondsPerDay < 0);
      us_ = number - day_ * kMicrosecondsPerDay;
    }
    civil_ = CivilFromDays(day_);
    week_ = IsoWeekOf(day_);
  }

  /// Whether the pattern names a field that intervals lack.
  bool failed() const { return failed_; }

  std::string Format(std::string_view pattern) {
    while (!pattern.empty()) {
      fill_ = true;
      const bool translated = pattern.starts_with("TM");
      if (pattern.starts_with("FM") || pattern.starts_with("fm") || translated) {
        fill_ = false;
        names_only_ = translated;
        pattern.remove_prefix(2);
      }
      const std::string_view keyword = FormatKeywordAt(pattern);
      if (keyword.empty()) {
        Plain(pattern);
        continue;
      }
      pattern.remove_prefix(keyword.size());
      if (time_ && !IsOfTime(absl::AsciiStrToUpper(std::string(keyword)))) {
        refused_ = keyword;
        return {};
      }
      std::string text = of_calendar_ ? Part(keyword) : PartOfInterval(keyword);
      names_only_ = false;
      if (pattern.starts_with("TH") || pattern.starts_with("th")) {
        const std::string ordinal(OrdinalOf(text));
        if (IsNumber(keyword)) text += pattern[0] == 'T' ? absl::AsciiStrToUpper(ordinal) : ordinal;
        pattern.remove_prefix(2);
      } else if (pattern.starts_with("SP")) {
        pattern.remove_prefix(2);
      }
      out_ += text;
    }
    return std::move(out_);
  }
  /// The part of the pattern that times lack; then Format has failed.
  std::string_view refused() const { return refused_; }

 private:
  static bool IsOfTime(std::string_view upper) {
    return upper[0] == 'H' || upper[0] == 'S' || upper[0] == 'F' || upper[0] == 'P' || upper == "MI" ||
           upper == "MS" || upper == "US" || upper == "AM" || upper == "A.M.";
  }

  /// Handles literals: a quoted text, or one character.
  void Plain(std::string_view& pattern) {
    if (pattern.empty()) return;
    if (pattern[0] != '"') {
      if (pattern.starts_with("\\\"")) pattern.remove_prefix(1);
      ConsumeCharacter(pattern);
      return;
    }
    pattern.remove_prefix(1);
    while (!pattern.empty()) {
      if (pattern[0] == '"') {
        pattern.remove_prefix(1);
        return;
      }
      if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
      ConsumeCharacter(pattern);
    }
  }

  void ConsumeCharacter(std::string_view& pattern) {
    const size_t bytes = CharacterBytes(pattern, 0);
    out_.append(pattern.substr(0, bytes));
    pattern.remove_prefix(bytes);
  }

  static bool IsNumber(std::string_view keyword) {
    const std::string upper = absl::AsciiStrToUpper(std::string(keyword));
    constexpr std::string_view kNoNumbers[] = {"A.D.", "AD", "B.C.",  "BC",  "A.M.", "AM",
                                               "P.M.", "PM", "MONTH", "MON", "DAY",  "DY",
                                               "RM",   "TZ", "TZH",   "TZM", "OF",   "FX"};
    return std::find(std::begin(kNoNumbers), std::end(kNoNumbers), upper) == std::end(kNoNumbers);
  }

  /// The name in the case of the pattern's letters; filled up to `width` blanks.
  std::string Name(std::string name, std::string_view keyword, size_t width) const {
    if (absl::ascii_islower(static_cast<unsigned char>(keyword[0])) != 0) {
      name = absl::AsciiStrToLower(name);
    } else if (absl::ascii_isupper(static_cast<unsigned char>(keyword[1])) != 0) {
      name = absl::AsciiStrToUpper(name);
    }
    if (fill_ && name.size() < width) name.resize(width, ' ');
    return name;
  }

  std::string Number(int64_t n, int width) const {
    return absl::StrFormat("%0*d", fill_ || names_only_ ? width + (n < 0) : 0, n);
  }

  /// The sign of days takes one of the places, unlike that of hours and months, as in PostgreSQL.
  std::string DaysOfInterval(int64_t n, int width) const {
    return absl::StrFormat("%0*d", fill_ || names_only_ ? width : 0, n);
  }

  /// The last `digits` digits of a year.
  std::string Year(int64_t year, int digits) const {
    constexpr int64_t kPowers[] = {1, 10, 100, 1000};
    return Number(digits == 4 ? year : year % kPowers[digits], digits);
  }

  std::string Part(std::string_view keyword) const {
    const std::string upper = absl::AsciiStrToUpper(std::string(keyword));
    const std::string_view month = kMonthNames[civil_.month - 1], day = kWeekDayNames[WeekDay(day_)];
    if (upper == "MONTH") return Name(std::string(month), keyword, 9);
    if (upper == "MON") return Name(std::string(month.substr(0, kShortNameLetters)), keyword, 0);
    if (upper == "DAY") return Name(std::string(day), keyword, 9);
    if (upper == "DY") return Name(std::string(day.substr(0, kShortNameLetters)), keyword, 0);
    if (upper == "RM") return Name(kRomanMonths[civil_.month - 1], keyword, 4);
    if (upper == "AD" || upper == "BC") return Name("AD", keyword, 0);
    if (upper == "A.D." || upper == "B.C.") return Name("A.D.", Doubled(keyword), 0);
    const bool afternoon = us_ / kMicrosecondsPerHour % 24 >= 12;
    if (upper == "AM" || upper == "PM") return Name(afternoon ? "PM" : "AM", keyword, 0);
    if (upper == "A.M." || upper == "P.M.") return Name(afternoon ? "P.M." : "A.M.", Doubled(keyword), 0);
    if (upper == "FX") return {};
    if (upper == "TZ") return keyword[0] == 't' ? absl::AsciiStrToLower(abbreviation_) : abbreviation_;
    const int32_t ahead = std::abs(offset_);
    if (upper == "TZH" || upper == "OF") {
      const std::string hours = absl::StrFormat("%c%02d", offset_ < 0 ? '-' : '+', ahead / 3600);
      const bool whole = ahead % 3600 == 0 || upper == "TZH";
      return whole ? hours : absl::StrFormat("%s:%02d", hours, ahead / 60 % 60);
    }
    if (upper == "TZM") return absl::StrFormat("%02d", ahead / 60 % 60);
    if (upper.starts_with("FF")) return Fraction(upper[2] - '0');
    if (upper[0] == 'Y' || upper == "CC" || upper == "Q" ||
        (upper[0] == 'I' && upper != "ID" && upper != "IW" && upper != "IDDD"))
      return OfYear(upper);
    return upper[0] == 'H' || upper[0] == 'S' || upper == "MI" || upper == "MS" || upper == "US"
               ? OfDay(upper)
               : OfCalendar(upper);
  }

  /// Numbers of years, months and days, of any size.
  std::string PartOfInterval(std::string_view keyword) {
    const std::string upper = absl::AsciiStrToUpper(std::string(keyword));
    const int year = civil_.year, month = civil_.month, day = civil_.day;
    if (upper == "FX") return {};
    if (upper == "MM") return Number(month, 2);
    if (upper == "DD") return DaysOfInterval(day, 2);
    if (upper == "DDD") return DaysOfInterval((int64_t{12} * year + month) * 30 + day, 3);
    if (upper == "CC") return Number(year / 100, 2);
    if (upper == "Q") return month == 0 ? "" : absl::StrCat((month - 1) / 3 + 1);
    if (upper == "W") return absl::StrCat((day - 1) / 7 + 1);
    if (upper == "RM") {
      if (month == 0 && year == 0) return {};
      // Whole years end with month XII; negative months count backwards, and whole years to month I.
      const int place = month > 0 ? month - 1 : month < 0 ? month + 12 : year > 0 ? 11 : 0;
      return Name(kRomanMonths[place], keyword, 4);
    }
    if (upper[0] == 'Y') return OfYear(upper);
    const bool afternoon = us_ / kMicrosecondsPerHour % 24 >= 12;
    if (upper == "AM" || upper == "PM") return Name(afternoon ? "PM" : "AM", keyword, 0);
    if (upper == "A.M." || upper == "P.M.") return Name(afternoon ? "P.M." : "A.M.", Doubled(keyword), 0);
    if (upper.starts_with("FF")) return Fraction(upper[2] - '0');
    if (upper[0] == 'H' || upper[0] == 'S' || upper == "MI" || upper == "MS" || upper == "US")
      return OfDay(upper);
    failed_ = true;
    return {};
  }

  /// The second letter of a name with dots tells its case as that of one without.
  static std::string_view Doubled(std::string_view keyword) {
    return keyword[0] == 'a' || keyword[0] == 'b' || keyword[0] == 'p' ? "aa" : "AA";
  }

  std::string Fraction(int digits) const {
    int64_t fraction = us_ % kMicrosecondsPerSecond;
    for (int i = digits; i < 6; ++i) fraction /= 10;
    return absl::StrFormat("%0*d", digits, fraction);
  }

  std::string OfDay(const std::string& upper) const {
    const int64_t hour = us_ / kMicrosecondsPerHour;
    if (upper == "HH24") return Number(hour, 2);
    if (upper[0] == 'H') return Number(hour % 12 == 0 ? 12 : hour % 12, 2);
    if (upper == "MI") return Number(us_ / kMicrosecondsPerMinute % 60, 2);
    if (upper == "SS") return Number(us_ / kMicrosecondsPerSecond % 60, 2);
    if (upper == "MS") return Fraction(3);
    if (upper == "US") return Fraction(6);
    return absl::StrCat(us_ / kMicrosecondsPerSecond);  // SSSS
  }

  std::string OfYear(const std::string& upper) const {
    if (upper == "CC") return Number((civil_.year + 99) / 100, 2);
    if (upper == "Q") return absl::StrCat((civil_.month - 1) / 3 + 1);
    if (upper == "Y,YYY") return absl::StrFormat("%d,%03d", civil_.year / 1000, civil_.year % 1000);
    const bool iso = upper[0] == 'I';
    return Year(iso ? week_.year : civil_.year, static_cast<int>(upper.size()));
  }

  std::string OfCalendar(const std::string& upper) const {
    const int64_t day_of_year = day_ - DaysFromCivil({civil_.year, 1, 1}) + 1;
    const int week_day = WeekDay(day_), iso_day = week_day == 0 ? 7 : week_day;
    if (upper == "MM") return Number(civil_.month, 2);
    if (upper == "DDD") return Number(day_of_year, 3);
    if (upper == "IDDD") return Number((week_.week - 1) * 7 + iso_day, 3);
    if (upper == "DD") return Number(civil_.day, 2);
    if (upper == "D") return absl::StrCat(week_day + 1);
    if (upper == "ID") return absl::StrCat(iso_day);
    if (upper == "IW") return Number(week_.week, 2);
    if (upper == "WW") return Number((day_of_year - 1) / 7 + 1, 2);
    if (upper == "W") return absl::StrCat((civil_.day - 1) / 7 + 1);
    return absl::StrCat(day_ + kJulianDayOf1970);  // J
  }

  int64_t day_ = 0, us_ = 0;
  int32_t offset_ = 0;  // seconds
  std::string abbreviation_;
  bool time_ = false;  // no date
  std::string_view refused_;
  CivilDate civil_{};
  IsoWeek week_{};
  bool of_calendar_ = true;  // a date or timestamp, not an interval
  bool failed_ = false;
  bool fill_ = true;
  bool names_only_ = false;  // TM fills no names
  std::string out_;
};

}  // namespace

absl::StatusOr<Value> FormatTime(const Expr& call, const Value& time, std::string_view pattern,
                                 const TimeZone* zone) {
  if (pattern.empty()) return Value::Null(call.type);
  // The longest output takes at most nine characters, and two for the ordinal, for each byte.
  TimeFormatter formatter(time, zone);
  std::string text = formatter.Format(pattern);
  if (!formatter.refused().empty()) {
    return Refusal(absl::StrCat("to_char(time) with ", Quote(formatter.refused()), " is not supported"),
                   call.position, "a time has hours, minutes and seconds");
  }
  return Value::String(std::move(text));
}

absl::StatusOr<Value> FormatInterval(const Expr& call, const Value& interval, std::string_view pattern) {
  if (pattern.empty()) return Value::Null(call.type);
  TimeFormatter formatter(interval, nullptr);
  std::string text = formatter.Format(pattern);
  if (!formatter.failed()) return Value::String(std::move(text));
  return UserError(sqlstate::kBadDate, "invalid format specification for an interval value", call.position,
                   "intervals are not tied to specific calendar dates");
}

}  // namespace nam::plan
