#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "types/calendar_names.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/sql_error.h"

/// to_date and to_timestamp: parse texts by a pattern without FX, as PostgreSQL does.
namespace nam::plan {
namespace {

enum class Field : uint8_t {
  kYear4,
  kYear3,
  kYear2,
  kYear1,
  kMonthName,
  kMonthShort,
  kMonth,
  kDayName,
  kDayShort,
  kDayOfYear,
  kDay,
  kHour24,
  kHour12,
  kMinute,
  kMillisecond,
  kSecond,
  kMicrosecond,
  kHalfOfDay,
  kHalfOfDayDots,
  kOther,  // not supported for parsing
};

struct Keyword {
  std::string_view name;
  Field field;
  size_t digits = 0;  // 0: no number
};

/// Longer names precede their prefixes.
constexpr Keyword kParseKeywords[] = {
    {"a.d.", Field::kOther},
    {"a.m.", Field::kHalfOfDayDots},
    {"ad", Field::kOther},
    {"am", Field::kHalfOfDay},
    {"b.c.", Field::kOther},
    {"bc", Field::kOther},
    {"cc", Field::kOther},
    {"day", Field::kDayName},
    {"ddd", Field::kDayOfYear, 3},
    {"dd", Field::kDay, 2},
    {"dy", Field::kDayShort},
    {"d", Field::kOther},
    {"ff1", Field::kOther},
    {"ff2", Field::kOther},
    {"ff3", Field::kOther},
    {"ff4", Field::kOther},
    {"ff5", Field::kOther},
    {"ff6", Field::kOther},
    {"fx", Field::kOther},
    {"hh24", Field::kHour24, 2},
    {"hh12", Field::kHour12, 2},
    {"hh", Field::kHour12, 2},
    {"i", Field::kOther},
    {"j", Field::kOther},
    {"mi", Field::kMinute, 2},
    {"mm", Field::kMonth, 2},
    {"month", Field::kMonthName},
    {"mon", Field::kMonthShort},
    {"ms", Field::kMillisecond, 3},
    {"of", Field::kOther},
    {"p.m.", Field::kHalfOfDayDots},
    {"pm", Field::kHalfOfDay},
    {"q", Field::kOther},
    {"rm", Field::kOther},
    {"ssss", Field::kOther},
    {"ss", Field::kSecond, 2},
    {"tz", Field::kOther},
    {"us", Field::kMicrosecond, 6},
    {"w", Field::kOther},
    {"y,yyy", Field::kOther},
    {"yyyy", Field::kYear4, 4},
    {"yyy", Field::kYear3, 3},
    {"yy", Field::kYear2, 2},
    {"y", Field::kYear1, 1},
};

const Keyword* ParseKeywordAt(std::string_view pattern) {
  for (const Keyword& keyword : kParseKeywords) {
    if (BeginsWithWord(pattern, keyword.name)) return &keyword;
  }
  return nullptr;
}

bool IsSpace(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool IsSeparator(char c) {
  return c > 0x20 && c < 0x7f && std::isalnum(static_cast<unsigned char>(c)) == 0;
}

/// A year of few digits is the one nearest 2020.
int64_t NearYear(int64_t year) {
  if (year < 70) return year + 2000;
  if (year < 100) return year + 1900;
  if (year < 520) return year + 2000;
  return year < 1000 ? year + 1000 : year;
}

class TimeReader {
 public:
  TimeReader(const Expr& call, std::string_view text, std::string_view pattern)
      : call_(call), whole_(text), text_(text), pattern_(pattern) {}

  absl::StatusOr<int64_t> Read() {
    SkipSpaces();
    while (!pattern_.empty() && !text_.empty()) NAM_RETURN_IF_ERROR(Next());
    return Moment();
  }

 private:
  absl::Status Next() {
    if (BeginsWithWord(pattern_, "fm")) {
      pattern_.remove_prefix(2);
      fills_ = true;
      return absl::OkStatus();
    }
    if (const Keyword* keyword = ParseKeywordAt(pattern_)) {
      name_ = pattern_.substr(0, keyword->name.size());
      pattern_.remove_prefix(keyword->name.size());
      if (BeginsWithWord(pattern_, "th")) {
        pattern_.remove_prefix(2);
        ordinal_ = true;
      }
      SkipSpaces();
      NAM_RETURN_IF_ERROR(Take(*keyword));
      if (ordinal_) text_.remove_prefix(std::min<size_t>(2, text_.size()));
      ordinal_ = fills_ = false;
      extra_ = 0;
      SkipSpaces();
      return absl::OkStatus();
    }
    if (pattern_[0] == '"') {
      pattern_.remove_prefix(1);
      while (!pattern_.empty() && pattern_[0] != '"') {
        if (pattern_[0] == '\\' && pattern_.size() > 1) pattern_.remove_prefix(1);
        pattern_.remove_prefix(CharacterBytes(pattern_, 0));
        SkipCharacter();
      }
      if (!pattern_.empty()) pattern_.remove_prefix(1);
      return absl::OkStatus();
    }
    const bool separator = IsSpace(pattern_[0]) || IsSeparator(pattern_[0]);
    pattern_.remove_prefix(CharacterBytes(pattern_, 0));
    if (!separator) {
      SkipCharacter();
    } else if (IsSpace(text_[0]) || IsSeparator(text_[0])) {
      text_.remove_prefix(1);
    } else {
      --extra_;
    }
    return absl::OkStatus();
  }

  void SkipSpaces() {
    for (; !text_.empty() && IsSpace(text_[0]); ++extra_) text_.remove_prefix(1);
  }
  /// Handles a literal of the pattern: skipped characters count.
  void SkipCharacter() {
    if (extra_ > 0) {
      --extra_;
    } else if (!text_.empty()) {
      text_.remove_prefix(CharacterBytes(text_, 0));
    }
  }

  absl::Status Bad(std::string what) const {
    return UserError(sqlstate::kBadDate, std::move(what), call_.position);
  }
  absl::Status BadValue(std::string_view value, std::string hint) const {
    return UserError(
        sqlstate::kBadDate,
        absl::StrCat("invalid value ", Quote(std::string(value)), " for ", Quote(std::string(name_))),
        call_.position, std::move(hint));
  }
  absl::Status OutOfRange() const {
    return UserError(sqlstate::kDateOutOfRange,
                     "date/time field value out of range: " + Quote(std::string(whole_)), call_.position);
  }

  /// Whether the rest of the pattern cannot begin with a digit of this number.
  bool Ends() const {
    if (ordinal_ || pattern_.empty()) return true;
    if (const Keyword* next = ParseKeywordAt(pattern_)) return next->digits == 0;
    return !IsDigit(pattern_[0]);
  }

  /// The number at the beginning of the text, of `digits` digits if another one follows.
  absl::StatusOr<int64_t> Number(size_t digits, size_t& length) {
    const bool ends = fills_ || Ends();
    const std::string_view from = ends ? text_ : text_.substr(0, digits);
    if (!ends && text_.size() < digits)
      return Bad(
          absl::StrCat("source string too short for ", Quote(std::string(name_)), " formatting field"));
    size_t used = !from.empty() && (from[0] == '-' || from[0] == '+') ? 1 : 0;
    const bool sign = used == 1;
    int64_t number = 0;
    while (used < from.size() && IsDigit(from[used])) {
      number = number * 10 + (from[used++] - '0');
      if (number > std::numeric_limits<int32_t>::max())
        return UserError(
            sqlstate::kDateOutOfRange,
            absl::StrCat("value for ", Quote(std::string(name_)), " in source string is out of range"),
            call_.position);
    }
    if (used == (sign ? 1U : 0U)) return BadValue(text_.substr(0, digits), "Value must be an integer.");
    if (!ends && used < digits) {
      return BadValue(
          from, absl::StrCat("Field requires ", digits, " characters, but only ", used, " could be parsed."));
    }
    length = used;
    number = sign && from[0] == '-' ? -number : number;
    text_.remove_prefix(used);
    return number;
  }

  absl::Status Set(std::optional<int64_t>& field, int64_t value) {
    if (field.has_value() && *field != value) {
      return UserError(
          sqlstate::kBadDate,
          absl::StrCat("conflicting values for ", Quote(std::string(name_)), " field in formatting string"),
          call_.position);
    }
    field = value;
    return absl::OkStatus();
  }

  /// The place of the name at the beginning of the text.
  absl::StatusOr<int64_t> Name(std::span<const std::string_view> names, size_t letters) {
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string_view name = names[i].substr(0, letters);
      if (!BeginsWithWord(text_, name)) continue;
      text_.remove_prefix(name.size());
      return static_cast<int64_t>(i);
    }
    return BadValue(text_.substr(0, text_.find(' ')),
                    "The given value did not match any of the allowed values for this field.");
  }

  absl::Status Take(const Keyword& keyword) {
    constexpr std::array<std::string_view, 2> kHalves = {"am", "pm"}, kHalvesDots = {"a.m.", "p.m."};
    constexpr size_t kAll = std::string_view::npos;
    if (keyword.field == Field::kOther) {
      return Refusal(
          absl::StrCat(Quote(std::string(name_)), " in a pattern that reads times is not supported"),
          call_.position, "there are YYYY, MM, MON, MONTH, DD, DDD, HH24, HH12, AM, MI, SS, MS, US");
    }
    if (keyword.digits == 0) {
      const bool month = keyword.field == Field::kMonthName || keyword.field == Field::kMonthShort;
      const bool half = keyword.field == Field::kHalfOfDay, dots = keyword.field == Field::kHalfOfDayDots;
      const bool whole = keyword.field == Field::kMonthName || keyword.field == Field::kDayName;
      NAM_ASSIGN_OR_RETURN(const int64_t place, half   ? Name(kHalves, kAll)
                                                : dots ? Name(kHalvesDots, kAll)
                                                : month
                                                    ? Name(kMonthNames, whole ? kAll : kShortNameLetters)
                                                    : Name(kWeekDayNames, whole ? kAll : kShortNameLetters));
      if (half || dots) {
        twelve_ = true;
        return Set(half_, place);
      }
      return month ? Set(month_, place + 1) : absl::OkStatus();
    }
    size_t length = 0;
    NAM_ASSIGN_OR_RETURN(int64_t number, Number(keyword.digits, length));
    switch (keyword.field) {
      case Field::kYear4:
        return Set(year_, number);
      case Field::kYear3:
      case Field::kYear2:
      case Field::kYear1:
        return Set(year_, length < 4 ? NearYear(number) : number);
      case Field::kMonth:
        return Set(month_, number);
      case Field::kDayOfYear:
        return Set(day_of_year_, number);
      case Field::kDay:
        return Set(day_, number);
      case Field::kHour12:
        twelve_ = true;
        return Set(hour_, number);
      case Field::kHour24:
        return Set(hour_, number);
      case Field::kMinute:
        return Set(minute_, number);
      case Field::kSecond:
        return Set(second_, number);
      default: {
        for (size_t at = length; at < keyword.digits; ++at) number *= 10;
        return Set(keyword.field == Field::kMillisecond ? millisecond_ : microsecond_, number);
      }
    }
  }

  absl::StatusOr<int64_t> Moment() const {
    int64_t hour = hour_.value_or(0);
    if (twelve_) {
      if (hour < 1 || hour > 12)
        return Bad(absl::StrCat("hour ", Quote(absl::StrCat(hour)), " is invalid for the 12-hour clock"));
      const bool afternoon = half_.value_or(0) == 1;
      hour = hour % 12 + (afternoon ? 12 : 0);
    }
    const int64_t year = year_.value_or(0), month = month_.value_or(1), day = day_.value_or(1);
    const int64_t minute = minute_.value_or(0), second = second_.value_or(0);
    const int64_t part = millisecond_.value_or(0) * 1000 + microsecond_.value_or(0);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || part < 0 ||
        part >= 1'000'000)
      return OutOfRange();
    if (day_of_year_.has_value() && !year_.has_value())
      return Bad("cannot calculate day of year without year information");
    if (year < 1 || year > 9999) return DateOutOfRange(call_.position);
    int64_t days = DaysFromCivil({static_cast<int32_t>(year), 1, 1});
    if (day_of_year_.has_value() && !month_.has_value() && !day_.has_value()) {
      const int64_t of_year = DaysInMonth(static_cast<int32_t>(year), 2) == 29 ? 366 : 365;
      if (*day_of_year_ < 1 || *day_of_year_ > of_year) return OutOfRange();
      days += *day_of_year_ - 1;
    } else {
      if (month < 1 || month > 12 || day < 1 ||
          day > DaysInMonth(static_cast<int32_t>(year), static_cast<int32_t>(month)))
        return OutOfRange();
      days =
          DaysFromCivil({static_cast<int32_t>(year), static_cast<int32_t>(month), static_cast<int32_t>(day)});
    }
    return days * kMicrosecondsPerDay + ((hour * 60 + minute) * 60 + second) * 1'000'000 + part;
  }

  const Expr& call_;
  const std::string_view whole_;
  std::string_view text_, pattern_;  // their rests
  std::string_view name_;            // of the current field
  int64_t extra_ = 0;                // characters skipped beyond the pattern's
  bool fills_ = false, ordinal_ = false, twelve_ = false;
  std::optional<int64_t> year_, month_, day_, day_of_year_, hour_, half_, minute_, second_, millisecond_,
      microsecond_;
};

}  // namespace

absl::StatusOr<int64_t> TimeOfText(const Expr& call, std::string_view text, std::string_view pattern) {
  return TimeReader(call, text, pattern).Read();
}

}  // namespace nam::plan
