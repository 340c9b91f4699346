#include "types/interval.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int kDaysPerWeek = 7, kDaysPerMonth = 30, kMonthsPerYear = 12;

template <typename T>
bool Fits(__int128 n) {
  return n >= std::numeric_limits<T>::min() && n <= std::numeric_limits<T>::max();
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
  // Keeps microseconds of a day's fraction; the rest is noise.
  const auto rounded = [](double x) {
    return std::rint(x * kMicrosecondsPerSecond) / kMicrosecondsPerSecond;
  };
  double left_days = rounded((months - whole_months) * kDaysPerMonth);
  double seconds = rounded((days - whole_days + left_days - static_cast<int32_t>(left_days)) * 86400.0);
  double more_days = static_cast<int32_t>(left_days);
  if (std::abs(seconds) >= 86400) {
    more_days += static_cast<int32_t>(seconds / 86400);
    seconds -= static_cast<int32_t>(seconds / 86400) * 86400.0;
  }
  const double us = std::rint(scaled(static_cast<double>(interval.us)) + seconds * kMicrosecondsPerSecond);
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
                        us / kMicrosecondsPerHour, us / kMicrosecondsPerMinute % 60,
                        us / kMicrosecondsPerSecond % 60);
  if (us % kMicrosecondsPerSecond == 0) return text;
  absl::StrAppendFormat(&text, ".%06d", us % kMicrosecondsPerSecond);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

namespace {

/// The units of an interval's numbers.
enum class Unit : uint8_t {
  kMicrosecond,
  kMillisecond,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kYear,
  kDecade,
  kCentury,
  kMillennium
};

constexpr uint32_t Bit(Unit unit) {
  return uint32_t{1} << static_cast<int>(unit);
}
constexpr uint32_t kSecondBits = Bit(Unit::kMicrosecond) | Bit(Unit::kMillisecond) | Bit(Unit::kSecond);
constexpr uint32_t kTimeBits = kSecondBits | Bit(Unit::kMinute) | Bit(Unit::kHour);

/// PostgreSQL's words, of which it compares ten letters.
std::optional<Unit> UnitOf(std::string_view word) {
  struct Word {
    std::string_view name;
    Unit unit;
  };
  static constexpr Word kWords[] = {{"c", Unit::kCentury},
                                    {"cent", Unit::kCentury},
                                    {"centuries", Unit::kCentury},
                                    {"century", Unit::kCentury},
                                    {"d", Unit::kDay},
                                    {"day", Unit::kDay},
                                    {"days", Unit::kDay},
                                    {"dec", Unit::kDecade},
                                    {"decade", Unit::kDecade},
                                    {"decades", Unit::kDecade},
                                    {"decs", Unit::kDecade},
                                    {"h", Unit::kHour},
                                    {"hour", Unit::kHour},
                                    {"hours", Unit::kHour},
                                    {"hr", Unit::kHour},
                                    {"hrs", Unit::kHour},
                                    {"m", Unit::kMinute},
                                    {"microsecon", Unit::kMicrosecond},
                                    {"mil", Unit::kMillennium},
                                    {"millennia", Unit::kMillennium},
                                    {"millennium", Unit::kMillennium},
                                    {"millisecon", Unit::kMillisecond},
                                    {"mils", Unit::kMillennium},
                                    {"min", Unit::kMinute},
                                    {"mins", Unit::kMinute},
                                    {"minute", Unit::kMinute},
                                    {"minutes", Unit::kMinute},
                                    {"mon", Unit::kMonth},
                                    {"mons", Unit::kMonth},
                                    {"month", Unit::kMonth},
                                    {"months", Unit::kMonth},
                                    {"ms", Unit::kMillisecond},
                                    {"msec", Unit::kMillisecond},
                                    {"msecond", Unit::kMillisecond},
                                    {"mseconds", Unit::kMillisecond},
                                    {"msecs", Unit::kMillisecond},
                                    {"s", Unit::kSecond},
                                    {"sec", Unit::kSecond},
                                    {"second", Unit::kSecond},
                                    {"seconds", Unit::kSecond},
                                    {"secs", Unit::kSecond},
                                    {"us", Unit::kMicrosecond},
                                    {"usec", Unit::kMicrosecond},
                                    {"usecond", Unit::kMicrosecond},
                                    {"useconds", Unit::kMicrosecond},
                                    {"usecs", Unit::kMicrosecond},
                                    {"w", Unit::kWeek},
                                    {"week", Unit::kWeek},
                                    {"weeks", Unit::kWeek},
                                    {"y", Unit::kYear},
                                    {"year", Unit::kYear},
                                    {"years", Unit::kYear},
                                    {"yr", Unit::kYear},
                                    {"yrs", Unit::kYear}};
  constexpr size_t kLetters = 10;
  const auto* const found = std::find_if(std::begin(kWords), std::end(kWords),
                                         [&](const Word& w) { return w.name == word.substr(0, kLetters); });
  return found == std::end(kWords) ? std::nullopt : std::optional(found->unit);
}

/// Reads an interval's parts from last to first, as PostgreSQL does: a number takes the unit of the text
/// after it, and each unit may occur only once.
class IntervalReader {
 public:
  IntervalReader(std::string_view text, IntervalField field) : left_(text), field_(field) {}

  absl::StatusOr<Interval> Read() {
    SkipBlanks();
    if (left_.starts_with('P') || left_.starts_with('p')) {
      left_.remove_prefix(1);
      NAM_RETURN_IF_ERROR(Iso());
    } else {
      NAM_RETURN_IF_ERROR(Parts());
    }
    const double us = std::rint(us_fraction_);
    if (!(std::abs(us) < 9.2e18)) return OutOfRange();
    const int sign = ago_ ? -1 : 1;
    if (!Fits<int32_t>(sign * days_) || !Fits<int64_t>(sign * (us_ + static_cast<__int128>(us))))
      return OutOfRange();
    return MakeInterval(sign * months_, sign * days_, sign * (us_ + static_cast<__int128>(us)));
  }

 private:
  static absl::Status Bad() { return absl::InvalidArgumentError("no interval"); }
  /// For one field; MakeInterval checks the whole.
  static absl::Status OutOfRange() { return absl::OutOfRangeError("interval field value out of range"); }

  void SkipBlanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\n\v\f\r"), left_.size())); }

  char Next() const { return left_.empty() ? '\0' : left_[0]; }

  // ─── Words and numbers

  /// Consumes one character and all following ones that `belongs` accepts.
  template <typename Belongs>
  std::string ConsumeWhile(Belongs belongs) {
    std::string taken;
    while (!left_.empty() && belongs(left_[0])) {
      taken.push_back(left_[0]);
      left_.remove_prefix(1);
    }
    return taken;
  }

  /// Splits into lower-case words, numbers and times of the day. Other characters are separators.
  absl::StatusOr<std::vector<std::string>> Split() {
    std::vector<std::string> tokens;
    while (SkipBlanks(), !left_.empty()) {
      const char c = left_[0];
      if (IsLetter(c)) {
        NAM_ASSIGN_OR_RETURN(tokens.emplace_back(), ConsumeWord());
      } else if (IsDigit(c) || c == '.') {
        tokens.push_back(ConsumeUnsigned());
      } else if (c == '-' || c == '+') {
        left_.remove_prefix(1);
        SkipBlanks();
        if (!IsDigit(Next()) && Next() != '.') return Bad();
        tokens.push_back(c +
                         ConsumeWhile([](char d) { return IsDigit(d) || d == ':' || d == '.' || d == '-'; }));
      } else if (absl::ascii_ispunct(static_cast<unsigned char>(c))) {
        left_.remove_prefix(1);
      } else {
        return Bad();
      }
    }
    return tokens;
  }

  absl::StatusOr<std::string> ConsumeWord() {
    std::string word = absl::AsciiStrToLower(ConsumeWhile(IsLetter));
    const char next = Next();
    if (next == '-' || next == '/' || next == '.') return Bad();
    // Only these words may be followed by a number without a separator.
    const bool followed =
        word == "d" || word == "h" || word == "m" || word == "s" || word == "y" || word == "mon";
    if ((next == '+' || IsDigit(next)) && !followed) return Bad();
    return word;
  }

  std::string ConsumeUnsigned() {
    if (Next() == '.') {
      left_.remove_prefix(1);
      return "." + ConsumeWhile(IsDigit);
    }
    std::string token = ConsumeWhile(IsDigit);
    const char next = Next();
    if (next == ':') return token + ConsumeWhile([](char c) { return IsDigit(c) || c == ':' || c == '.'; });
    if (next != '-' && next != '/' && next != '.') return token;
    return token + ConsumeWhile([&](char c) { return IsDigit(c) || c == next; });
  }

  struct Number {
    bool negative = false;
    __int128 whole = 0;  // without its sign
    double fraction = 0;
    size_t digits = 0;
  };

  /// Consumes a number at the front of the text.
  static bool ConsumeNumber(std::string_view& text, Number& out) {
    size_t at = 0;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) out.negative = text[at++] == '-';
    const size_t first = at;
    for (; at < text.size() && IsDigit(text[at]); ++at)
      out.whole = std::min<__int128>(out.whole * 10 + (text[at] - '0'), PowerOfTen(30));
    out.digits = at - first;
    if (at < text.size() && text[at] == '.') {
      const size_t dot = at++;
      while (at < text.size() && IsDigit(text[at])) ++at;
      if (at == dot + 1) return false;
      out.digits += at - dot - 1;
      out.fraction = std::atof(("0" + std::string(text.substr(dot, at - dot))).c_str());
    }
    if (out.digits == 0) return false;
    text.remove_prefix(at);
    return true;
  }

  // ─── Parts

  absl::Status Parts() {
    NAM_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, Split());
    std::optional<Unit> unit;
    bool named = false;  // by a word not yet used by a number
    for (size_t i = tokens.size(); i-- > 0;) {
      const std::string& token = tokens[i];
      if (token == "ago") {
        if (i + 1 < tokens.size()) return Bad();
        ago_ = true;
      } else if (IsLetter(token[0])) {
        unit = UnitOf(token);
        if (!unit.has_value() || named) return Bad();
        named = true;
      } else if (token.find(':') != std::string::npos) {
        if (named) return Bad();
        NAM_RETURN_IF_ERROR(TimeOfDay(token));
        unit = Unit::kDay;  // for a number before it
      } else {
        if (!unit.has_value()) unit = DefaultUnit();
        NAM_RETURN_IF_ERROR(Part(token, *unit));
        named = false;
      }
    }
    return named || seen_ == 0 ? Bad() : absl::OkStatus();
  }

  absl::Status See(uint32_t units) {
    if ((seen_ & units) != 0) return Bad();
    seen_ |= units;
    return absl::OkStatus();
  }

  /// A number, or `years-months`, which sets the unit to months.
  absl::Status Part(std::string_view token, Unit& unit) {
    Number number;
    if (!ConsumeNumber(token, number)) return Bad();
    if (token.starts_with('-')) {
      token.remove_prefix(1);
      Number months;
      if (number.fraction != 0 || (!token.empty() && !IsDigit(token[0]))) return Bad();
      if (!token.empty() && !ConsumeNumber(token, months)) return Bad();
      if (months.whole >= kMonthsPerYear || number.whole >= PowerOfTen(28)) return OutOfRange();
      number.whole = number.whole * kMonthsPerYear + months.whole;
      if (months.fraction != 0) return Bad();
      unit = Unit::kMonth;
    }
    if (!token.empty()) return Bad();
    NAM_RETURN_IF_ERROR(See(unit == Unit::kSecond && number.fraction != 0 ? kSecondBits : Bit(unit)));
    return Add(number, unit);
  }

  /// `[-]HH:MM[:SS[.f]]`, or `MM:SS.f`.
  absl::Status TimeOfDay(std::string_view token) {
    Number parts[3];
    size_t count = 0;
    while (true) {
      if (count > 0 && !IsDigit(token.empty() ? '\0' : token[0])) return Bad();
      if (!ConsumeNumber(token, parts[count++])) return Bad();
      if (token.empty()) break;
      if (count == std::size(parts) || token[0] != ':' || parts[count - 1].fraction != 0) return Bad();
      token.remove_prefix(1);
    }
    const bool negative = parts[0].negative;
    if (count == 2) {
      if (parts[1].fraction != 0) {
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = {};
      } else if (field_ == IntervalField::kSecond) {
        return Bad();
      }
    }
    if (parts[1].whole > 59 || parts[2].whole > 60 || parts[0].whole > PowerOfTen(12)) return OutOfRange();
    const __int128 us = parts[0].whole * kMicrosecondsPerHour + parts[1].whole * kMicrosecondsPerMinute +
                        parts[2].whole * kMicrosecondsPerSecond +
                        static_cast<int64_t>(std::rint(parts[2].fraction * kMicrosecondsPerSecond));
    us_ += negative ? -us : us;
    return See(kTimeBits);
  }

  Unit DefaultUnit() const {
    switch (field_) {
      case IntervalField::kYear:
        return Unit::kYear;
      case IntervalField::kMonth:
        return Unit::kMonth;
      case IntervalField::kDay:
        return Unit::kDay;
      case IntervalField::kHour:
        return Unit::kHour;
      case IntervalField::kMinute:
        return Unit::kMinute;
      default:
        return Unit::kSecond;
    }
  }

  // ─── ISO 8601

  /// `1Y2M3DT4H5M6S` or `0001-02-03T04:05:06` after the P.
  absl::Status Iso() {
    if (left_.empty()) return Bad();
    bool time = false, first = true;  // in its half
    while (!left_.empty()) {
      if (Next() == 'T' || Next() == 't') {
        if (time) return Bad();
        time = first = true;
        left_.remove_prefix(1);
        continue;
      }
      Number number;
      if (!ConsumeNumber(left_, number)) return Bad();
      if (first && (Next() == '-' || Next() == ':')) {
        if ((Next() == ':') != time) return Bad();
        NAM_RETURN_IF_ERROR(Alternative(number, time));
        if (left_.empty() || (!time && absl::ascii_toupper(static_cast<unsigned char>(Next())) == 'T'))
          continue;
        return Bad();
      }
      first = false;
      const char letter = static_cast<char>(absl::ascii_toupper(static_cast<unsigned char>(Next())));
      const std::optional<Unit> unit = time            ? letter == 'H'   ? std::optional(Unit::kHour)
                                                         : letter == 'M' ? std::optional(Unit::kMinute)
                                                         : letter == 'S' ? std::optional(Unit::kSecond)
                                                                         : std::nullopt
                                       : letter == 'Y' ? std::optional(Unit::kYear)
                                       : letter == 'M' ? std::optional(Unit::kMonth)
                                       : letter == 'W' ? std::optional(Unit::kWeek)
                                       : letter == 'D' ? std::optional(Unit::kDay)
                                                       : std::nullopt;
      if (!unit.has_value()) return Bad();
      left_.remove_prefix(1);
      NAM_RETURN_IF_ERROR(Add(number, *unit));
    }
    return absl::OkStatus();
  }

  /// `-MM[-DD]` after the years, `:MM[:SS]` after the hours.
  absl::Status Alternative(const Number& first, bool time) {
    const Unit units[] = {time ? Unit::kHour : Unit::kYear, time ? Unit::kMinute : Unit::kMonth,
                          time ? Unit::kSecond : Unit::kDay};
    NAM_RETURN_IF_ERROR(Add(first, units[0]));
    for (size_t i = 1; i < std::size(units) && Next() == (time ? ':' : '-'); ++i) {
      left_.remove_prefix(1);
      Number number;
      if (!ConsumeNumber(left_, number)) return Bad();
      NAM_RETURN_IF_ERROR(Add(number, units[i]));
    }
    return absl::OkStatus();
  }

  // ─── Sums

  absl::Status Add(const Number& number, Unit unit) {
    if (number.whole >= PowerOfTen(28)) return OutOfRange();
    const __int128 whole = number.negative ? -number.whole : number.whole;
    const double fraction = number.negative ? -number.fraction : number.fraction;
    const auto part_of_days = [&](double more) {
      days_ += static_cast<int64_t>(more);
      us_fraction_ += (more - static_cast<double>(static_cast<int64_t>(more))) * kMicrosecondsPerDay;
    };
    const auto years = [&](int each) {
      if (!Fits<int32_t>(whole * each)) return OutOfRange();
      months_ +=
          whole * each * kMonthsPerYear + static_cast<int64_t>(std::rint(fraction * each * kMonthsPerYear));
      return absl::OkStatus();
    };
    const auto time = [&](int64_t each) {
      us_ += whole * each;
      us_fraction_ += fraction * static_cast<double>(each);
    };
    switch (unit) {
      case Unit::kMillennium:
        return years(1000);
      case Unit::kCentury:
        return years(100);
      case Unit::kDecade:
        return years(10);
      case Unit::kYear:
        return years(1);
      case Unit::kMonth:
        if (!Fits<int32_t>(whole)) return OutOfRange();
        months_ += whole;
        part_of_days(fraction * kDaysPerMonth);
        break;
      case Unit::kWeek:
        days_ += whole * kDaysPerWeek;
        part_of_days(fraction * kDaysPerWeek);
        break;
      case Unit::kDay:
        days_ += whole;
        part_of_days(fraction);
        break;
      case Unit::kHour:
        time(kMicrosecondsPerHour);
        break;
      case Unit::kMinute:
        time(kMicrosecondsPerMinute);
        break;
      case Unit::kSecond:
        time(kMicrosecondsPerSecond);
        break;
      case Unit::kMillisecond:
        time(1000);
        break;
      case Unit::kMicrosecond:
        time(1);
        break;
    }
    return absl::OkStatus();
  }

  std::string_view left_;
  const IntervalField field_;
  uint32_t seen_ = 0;  // bits of units
  bool ago_ = false;
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
    days += DaysInMonth(db.year, db.month);  // in the earlier date's month
    --months;
  }
  months += years * kMonthsPerYear;
  const int sign = negative ? -1 : 1;
  return {sign * months, sign * days, sign * us};
}

}  // namespace nam
