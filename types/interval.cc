#include "types/interval.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
constexpr int kDaysPerMonth = 30, kMonthsPerYear = 12;

template <typename T>
bool Fits(__int128 n) {
  return n >= std::numeric_limits<T>::min() && n <= std::numeric_limits<T>::max();
}

int64_t DayOf(int64_t us) {
  return us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
}

}  // namespace

__int128 PackInterval(const Interval& interval) {
  const auto high = static_cast<uint64_t>(static_cast<uint32_t>(interval.months)) << 32 |
                    static_cast<uint32_t>(interval.days);
  return static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 |
                               static_cast<uint64_t>(interval.us));
}

Interval UnpackInterval(__int128 packed) {
  const auto bits = static_cast<unsigned __int128>(packed);
  return {static_cast<int32_t>(static_cast<uint32_t>(bits >> 96)),
          static_cast<int32_t>(static_cast<uint32_t>(bits >> 64)),
          static_cast<int64_t>(static_cast<uint64_t>(bits))};
}

__int128 SpanOf(const Interval& interval) {
  const __int128 days = __int128{interval.months} * kDaysPerMonth + interval.days;
  return days * kMicrosecondsPerDay + interval.us;
}

absl::StatusOr<Interval> MakeInterval(__int128 months, __int128 days, __int128 us) {
  if (!Fits<int32_t>(months) || !Fits<int32_t>(days) || !Fits<int64_t>(us))
    return absl::OutOfRangeError("interval out of range");
  return Interval{static_cast<int32_t>(months), static_cast<int32_t>(days), static_cast<int64_t>(us)};
}

absl::StatusOr<Interval> AddIntervals(const Interval& a, const Interval& b, int sign) {
  return MakeInterval(__int128{a.months} + sign * __int128{b.months},
                      __int128{a.days} + sign * __int128{b.days}, __int128{a.us} + sign * __int128{b.us});
}

absl::StatusOr<Interval> ScaleInterval(const Interval& interval, double factor, bool divide) {
  const auto scaled = [&](double x) { return divide ? x / factor : x * factor; };
  const double months = scaled(interval.months), days = scaled(interval.days);
  if (!(std::abs(months) < 2147483647.0) || !(std::abs(days) < 2147483647.0))
    return absl::OutOfRangeError("interval out of range");
  const auto whole_months = static_cast<int32_t>(months);
  const auto whole_days = static_cast<int32_t>(days);
  // Microseconds of a day's part are kept, what is beyond them is noise.
  const auto rounded = [](double x) { return std::rint(x * kSecond) / kSecond; };
  double left_days = rounded((months - whole_months) * kDaysPerMonth);
  double seconds = rounded((days - whole_days + left_days - static_cast<int32_t>(left_days)) * 86400.0);
  double more_days = static_cast<int32_t>(left_days);
  if (std::abs(seconds) >= 86400) {
    more_days += static_cast<int32_t>(seconds / 86400);
    seconds -= static_cast<int32_t>(seconds / 86400) * 86400.0;
  }
  const double us = std::rint(scaled(static_cast<double>(interval.us)) + seconds * kSecond);
  if (!(std::abs(us) < 9.2e18)) return absl::OutOfRangeError("interval out of range");
  return MakeInterval(whole_months, whole_days + static_cast<__int128>(more_days), static_cast<__int128>(us));
}

std::string IntervalText(const Interval& interval) {
  std::string text;
  bool negative_before = false;
  const auto part = [&](int64_t n, const char* unit) {
    if (n == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : " ", negative_before && n > 0 ? "+" : "", n, " ", unit,
                    n == 1 ? "" : "s");
    negative_before = n < 0;
  };
  part(interval.months / kMonthsPerYear, "year");
  part(interval.months % kMonthsPerYear, "mon");
  part(interval.days, "day");
  if (interval.us == 0 && !text.empty()) return text;
  const bool negative = interval.us < 0;
  const uint64_t us = negative ? -static_cast<uint64_t>(interval.us) : static_cast<uint64_t>(interval.us);
  absl::StrAppendFormat(&text, "%s%s%02d:%02d:%02d", text.empty() ? "" : " ",
                        negative          ? "-"
                        : negative_before ? "+"
                                          : "",
                        us / kHour, us / kMinute % 60, us / kSecond % 60);
  if (us % kSecond == 0) return text;
  absl::StrAppendFormat(&text, ".%06d", us % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

namespace {

/// Reads the parts of an interval one after the other.
class IntervalReader {
 public:
  IntervalReader(std::string_view text, IntervalField field) : left_(text), field_(field) {}

  absl::StatusOr<Interval> Read() {
    SkipBlanks();
    if (left_.starts_with('@')) left_.remove_prefix(1);
    SkipBlanks();
    if (left_.empty()) return Bad();
    if (left_[0] == 'P' || left_[0] == 'p') {
      NAM_RETURN_IF_ERROR(Iso());
    } else {
      NAM_RETURN_IF_ERROR(Parts());
    }
    const double us = std::rint(us_fraction_);
    if (!(std::abs(us) < 9.2e18)) return absl::OutOfRangeError("interval out of range");
    const int sign = ago_ ? -1 : 1;
    return MakeInterval(sign * months_, sign * days_, sign * (us_ + static_cast<__int128>(us)));
  }

 private:
  static absl::Status Bad() { return absl::InvalidArgumentError("no interval"); }

  void SkipBlanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\n\v\f\r"), left_.size())); }

  absl::Status Parts() {
    while (SkipBlanks(), !left_.empty()) {
      Number number;
      if (!TakeNumber(number)) {
        if (TakeWord() != "ago" || (SkipBlanks(), !left_.empty()) || !any_) return Bad();
        ago_ = true;
        return absl::OkStatus();
      }
      any_ = true;
      if (left_.starts_with(':')) {
        NAM_RETURN_IF_ERROR(TimeOfDay(number));
        continue;
      }
      SkipBlanks();
      // A word behind the last number may be "ago" already.
      const std::string_view before = left_;
      std::string unit = TakeWord();
      if (unit == "ago") {
        left_ = before;
        unit.clear();
      }
      if (unit.empty()) {
        // What stands before a time of the day is days.
        const bool time_follows = left_.size() > 1 && left_.find(':') != std::string_view::npos;
        unit = time_follows ? "day" : DefaultUnit();
      }
      NAM_RETURN_IF_ERROR(Add(number, unit));
    }
    return absl::OkStatus();
  }

  absl::Status Iso() {
    left_.remove_prefix(1);
    bool time = false;
    if (left_.empty()) return Bad();
    while (!left_.empty()) {
      if (left_[0] == 'T' || left_[0] == 't') {
        time = true;
        left_.remove_prefix(1);
        continue;
      }
      Number number;
      if (!TakeNumber(number) || left_.empty()) return Bad();
      const char unit = absl::ascii_toupper(static_cast<unsigned char>(left_[0]));
      left_.remove_prefix(1);
      const char* name = unit == 'Y' ? "year" : unit == 'W' ? "week" : unit == 'D' ? "day" : nullptr;
      if (unit == 'M') name = time ? "minute" : "month";
      if (time && unit == 'H') name = "hour";
      if (time && unit == 'S') name = "second";
      if (name == nullptr) return Bad();
      NAM_RETURN_IF_ERROR(Add(number, name));
    }
    return absl::OkStatus();
  }

  struct Number {
    bool negative = false;
    __int128 whole = 0;  // without its sign
    double fraction = 0;
    size_t digits = 0;
    double value() const { return (negative ? -1 : 1) * (static_cast<double>(whole) + fraction); }
  };

  bool TakeNumber(Number& out) {
    size_t at = 0;
    if (at < left_.size() && (left_[at] == '-' || left_[at] == '+')) out.negative = left_[at++] == '-';
    const size_t first = at;
    for (; at < left_.size() && absl::ascii_isdigit(static_cast<unsigned char>(left_[at])); ++at)
      out.whole = std::min<__int128>(out.whole * 10 + (left_[at] - '0'), PowerOfTen(30));
    out.digits = at - first;
    if (at < left_.size() && left_[at] == '.') {
      const size_t dot = at++;
      while (at < left_.size() && absl::ascii_isdigit(static_cast<unsigned char>(left_[at]))) ++at;
      out.digits += at - dot - 1;
      out.fraction = std::atof(("0" + std::string(left_.substr(dot, at - dot))).c_str());
    }
    if (out.digits == 0) return false;
    left_.remove_prefix(at);
    return true;
  }

  std::string TakeWord() {
    size_t at = 0;
    while (at < left_.size() && absl::ascii_isalpha(static_cast<unsigned char>(left_[at]))) ++at;
    std::string word = absl::AsciiStrToLower(std::string(left_.substr(0, at)));
    left_.remove_prefix(at);
    return word;
  }

  /// `:MM[:SS[.f]]` behind the hours.
  absl::Status TimeOfDay(const Number& hours) {
    Number minutes, seconds;
    left_.remove_prefix(1);
    if (!absl::ascii_isdigit(static_cast<unsigned char>(left_.empty() ? 'x' : left_[0]))) return Bad();
    if (!TakeNumber(minutes) || hours.fraction != 0) return Bad();
    if (left_.starts_with(':')) {
      left_.remove_prefix(1);
      if (left_.empty() || left_[0] == '-' || left_[0] == '+' || !TakeNumber(seconds)) return Bad();
      if (minutes.fraction != 0) return Bad();
    } else if (field_ == IntervalField::kSecond) {
      return Bad();
    }
    if (minutes.whole > 59 || seconds.whole > 60) return absl::OutOfRangeError("interval out of range");
    if (hours.whole > PowerOfTen(12)) return absl::OutOfRangeError("interval out of range");
    const __int128 us = hours.whole * kHour + minutes.whole * kMinute + seconds.whole * kSecond +
                        static_cast<int64_t>(std::rint(seconds.fraction * kSecond));
    us_ += hours.negative ? -us : us;
    return absl::OkStatus();
  }

  const char* DefaultUnit() const {
    switch (field_) {
      case IntervalField::kYear:
        return "year";
      case IntervalField::kMonth:
        return "month";
      case IntervalField::kDay:
        return "day";
      case IntervalField::kHour:
        return "hour";
      case IntervalField::kMinute:
        return "minute";
      default:
        return "second";
    }
  }

  absl::Status Add(const Number& number, std::string unit) {
    if (unit.size() > 2 && unit.ends_with('s') && unit != "mins" && unit != "secs" && unit != "hrs" &&
        unit != "yrs" && unit != "mons" && unit != "ms" && unit != "us")
      unit.pop_back();
    if (number.whole >= PowerOfTen(28)) return absl::OutOfRangeError("interval out of range");
    const __int128 whole = number.negative ? -number.whole : number.whole;
    const double fraction = number.negative ? -number.fraction : number.fraction;
    const auto months = [&](int each) {
      months_ += whole * each + static_cast<int64_t>(std::rint(fraction * each));
    };
    const auto days = [&](int each) {
      days_ += whole * each;
      const double more = fraction * each;
      days_ += static_cast<int64_t>(more);
      us_fraction_ += (more - static_cast<double>(static_cast<int64_t>(more))) * kMicrosecondsPerDay;
    };
    const auto time = [&](int64_t each) {
      us_ += whole * each;
      us_fraction_ += fraction * static_cast<double>(each);
    };
    if (unit == "year" || unit == "y" || unit == "yr" || unit == "yrs") {
      months(kMonthsPerYear);
    } else if (unit == "month" || unit == "mon" || unit == "mons") {
      months_ += whole;
      const double more = fraction * kDaysPerMonth;
      days_ += static_cast<int64_t>(more);
      us_fraction_ += (more - static_cast<double>(static_cast<int64_t>(more))) * kMicrosecondsPerDay;
    } else if (unit == "decade") {
      months(10 * kMonthsPerYear);
    } else if (unit == "century" || unit == "centurie") {
      months(100 * kMonthsPerYear);
    } else if (unit == "millennium" || unit == "millennia") {
      months(1000 * kMonthsPerYear);
    } else if (unit == "week" || unit == "w") {
      days(7);
    } else if (unit == "day" || unit == "d") {
      days(1);
    } else if (unit == "hour" || unit == "h" || unit == "hr" || unit == "hrs") {
      time(kHour);
    } else if (unit == "minute" || unit == "m" || unit == "min" || unit == "mins") {
      time(kMinute);
    } else if (unit == "second" || unit == "s" || unit == "sec" || unit == "secs") {
      time(kSecond);
    } else if (unit == "millisecond" || unit == "ms" || unit == "msec") {
      time(1000);
    } else if (unit == "microsecond" || unit == "us" || unit == "usec") {
      time(1);
    } else {
      return Bad();
    }
    return absl::OkStatus();
  }

  std::string_view left_;
  const IntervalField field_;
  bool any_ = false, ago_ = false;
  __int128 months_ = 0, days_ = 0, us_ = 0;
  double us_fraction_ = 0;
};

}  // namespace

absl::StatusOr<Interval> ParseInterval(std::string_view text, IntervalField field) {
  return IntervalReader(text, field).Read();
}

absl::StatusOr<int64_t> AddToTimestamp(int64_t us, const Interval& interval, int sign) {
  const auto out_of_range = [] { return absl::OutOfRangeError("timestamp out of range"); };
  int64_t day = DayOf(us);
  const int64_t of_day = us - day * kMicrosecondsPerDay;
  if (interval.months != 0) {
    const CivilDate from = CivilFromDays(day);
    const int64_t month =
        int64_t{from.year} * kMonthsPerYear + (from.month - 1) + sign * int64_t{interval.months};
    if (month < kMonthsPerYear || month >= int64_t{10000} * kMonthsPerYear) return out_of_range();
    CivilDate to{static_cast<int32_t>(month / kMonthsPerYear),
                 static_cast<int32_t>(month % kMonthsPerYear) + 1, from.day};
    to.day = std::min(to.day, DaysInMonth(to.year, to.month));
    day = DaysFromCivil(to);
  }
  const __int128 days = __int128{day} + sign * __int128{interval.days};
  const __int128 moved = days * kMicrosecondsPerDay + of_day + sign * __int128{interval.us};
  if (moved < __int128{kLeastDay} * kMicrosecondsPerDay ||
      moved >= __int128{kGreatestDay + 1} * kMicrosecondsPerDay)
    return out_of_range();
  return static_cast<int64_t>(moved);
}

Interval AgeOf(int64_t a, int64_t b) {
  const bool negative = a < b;
  if (negative) std::swap(a, b);
  const CivilDate da = CivilFromDays(DayOf(a)), db = CivilFromDays(DayOf(b));
  int64_t us = (a - DayOf(a) * kMicrosecondsPerDay) - (b - DayOf(b) * kMicrosecondsPerDay);
  int32_t days = da.day - db.day, months = da.month - db.month, years = da.year - db.year;
  if (us < 0) {
    us += kMicrosecondsPerDay;
    --days;
  }
  if (days < 0) {
    days += DaysInMonth(db.year, db.month);  // of the earlier date's month
    --months;
  }
  months += years * kMonthsPerYear;
  const int sign = negative ? -1 : 1;
  return {sign * months, sign * days, sign * us};
}

}  // namespace nam
