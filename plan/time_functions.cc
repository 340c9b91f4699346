#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/function_families.h"
#include "plan/time_field.h"
#include "types/date.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

using T = TimeField;

/// The parts of a timestamp or an interval.
struct Parts {
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  int64_t us = 0;            // of the day; for an interval all but its days
  int64_t calendar_day = 0;  // since 1970; not for an interval
  bool interval = false;
  bool time = false;  // false: a day alone
};

Parts PartsOf(const Interval& interval) {
  return {.year = interval.months / 12,
          .month = interval.months % 12,
          .day = interval.days,
          .us = interval.us,
          .interval = true};
}

Parts PartsOf(int64_t us) {
  const int64_t day = DayOf(us);
  const CivilDate civil = CivilFromDays(day);
  return {.year = civil.year,
          .month = civil.month,
          .day = civil.day,
          .us = us - day * kMicrosecondsPerDay,
          .calendar_day = day};
}

Parts PartsOf(const Value& time) {
  if (time.type.kind == TypeKind::kInterval) return PartsOf(time.interval());
  const auto number = static_cast<int64_t>(time.number);
  if (time.type.kind == TypeKind::kTime) return {.us = number, .time = true};
  return PartsOf(time.type.kind == TypeKind::kDate ? number * kMicrosecondsPerDay : number);
}

const char* NameOfType(const Type& type) {
  return type.kind == TypeKind::kDate       ? "date"
         : type.kind == TypeKind::kInterval ? "interval"
         : type.kind == TypeKind::kTime     ? "time without time zone"
                                            : "timestamp without time zone";
}

absl::Status NotSupported(const Expr& call, const Value& time, std::string_view field) {
  return Refusal(absl::StrCat("unit ", Quote(absl::AsciiStrToLower(std::string(field))),
                              " not supported for type ", NameOfType(time.type)),
                 call.position);
}

// ─── EXTRACT

/// The result of EXTRACT, as a number of so many decimals.
struct Extracted {
  __int128 number = 0;
  int scale = 0;
};

Extracted EpochOf(const Parts& parts) {
  if (!parts.interval) return {__int128{parts.calendar_day} * kMicrosecondsPerDay + parts.us, 6};
  // A year has 365.25 days here, a month beyond whole years 30.
  const __int128 quarter_days =
      __int128{parts.year} * 1461 + __int128{parts.month} * 120 + __int128{parts.day} * 4;
  return {quarter_days * (kMicrosecondsPerDay / 4) + parts.us, 6};
}

/// Fields of calendar days only.
std::optional<Extracted> CalendarField(T field, const Parts& parts) {
  const int64_t day = parts.calendar_day;
  switch (field) {
    case T::kWeek:
      return Extracted{IsoWeekOf(day).week};
    case T::kIsoYear:
      return Extracted{IsoWeekOf(day).year};
    case T::kDayOfWeek:
      return Extracted{WeekDay(day)};
    case T::kIsoDayOfWeek:
      return Extracted{WeekDay(day) == 0 ? 7 : WeekDay(day)};
    case T::kDayOfYear:
      return Extracted{day - DaysFromCivil({static_cast<int32_t>(parts.year), 1, 1}) + 1};
    default:
      return std::nullopt;
  }
}

/// nullopt if the type does not have the field.
std::optional<Extracted> Extract(T field, const Parts& parts) {
  const bool interval = parts.interval;
  // An interval counts its years from 0; the calendar's centuries begin with the year 1.
  const int64_t before = interval ? 0 : 99, before_all = interval ? 0 : 999;
  switch (field) {
    case T::kEpoch:
      return EpochOf(parts);
    case T::kYear:
      return Extracted{parts.year};
    case T::kQuarter:
      return Extracted{interval ? parts.month / 3 + 1 : (parts.month - 1) / 3 + 1};
    case T::kMonth:
      return Extracted{parts.month};
    case T::kDay:
      return Extracted{parts.day};
    case T::kDecade:
      return Extracted{parts.year / 10};
    case T::kCentury:
      return Extracted{(parts.year + before) / 100};
    case T::kMillennium:
      return Extracted{(parts.year + before_all) / 1000};
    case T::kHour:
      return Extracted{parts.us / kMicrosecondsPerHour};
    case T::kMinute:
      return Extracted{parts.us / kMicrosecondsPerMinute % 60};
    case T::kSecond:
      return Extracted{parts.us % kMicrosecondsPerMinute, 6};
    case T::kMillisecond:
      return Extracted{parts.us % kMicrosecondsPerMinute, 3};
    case T::kMicrosecond:
      return Extracted{parts.us % kMicrosecondsPerMinute, 0};
    default:
      return interval ? std::nullopt : CalendarField(field, parts);
  }
}

bool IsOfDay(T field) {
  return field <= T::kHour;
}

/// date_trunc only knows fields that a date's or a time's text has.
bool IsNamedByTruncation(T field) {
  return field < T::kEpoch;
}

absl::StatusOr<T> FieldOf(const Expr& call, const std::string& name, const Value& time) {
  const std::optional<T> field = TimeFieldOf(name);
  if (field && (FunctionOf(call) != F::kTruncateTime || IsNamedByTruncation(*field))) return *field;
  const std::string unit = absl::AsciiStrToLower(name);
  if (unit.starts_with("timezone") || (unit == "julian" && FunctionOf(call) != F::kTruncateTime))
    return NotSupported(call, time, name);
  return UserError(sqlstate::kBadParameter,
                   absl::StrCat("unit ", Quote(unit), " not recognized for type ", NameOfType(time.type)),
                   call.position);
}

absl::StatusOr<Value> ExtractField(const Expr& call, const Value& name, const Value& time) {
  NAM_ASSIGN_OR_RETURN(const T field, FieldOf(call, name.text, time));
  const bool part = FunctionOf(call) == F::kDatePart;
  // A date has no hours for EXTRACT; date_part takes it as a timestamp. A time has only hours and less.
  const bool none = time.type.kind == TypeKind::kDate   ? IsOfDay(field) && !part
                    : time.type.kind == TypeKind::kTime ? !IsOfDay(field) && field != T::kEpoch
                                                        : false;
  const std::optional<Extracted> out = none ? std::nullopt : Extract(field, PartsOf(time));
  if (!out) return NotSupported(call, time, name.text);
  if (part)
    return Value::Double(static_cast<double>(out->number) / static_cast<double>(PowerOfTen(out->scale)));
  const std::optional<__int128> scaled = Rescale(out->number, out->scale, call.type.scale);
  if (!scaled) return NumberOutOfRange(call.position);
  return Value{call.type, false, *scaled, {}};
}

// ─── date_trunc

/// Truncates to a multiple of `unit`, towards zero.
int64_t Cut(int64_t us, int64_t unit) {
  return us - us % unit;
}

std::optional<int64_t> UnitOf(T field) {
  switch (field) {
    case T::kMicrosecond:
      return 1;
    case T::kMillisecond:
      return 1000;
    case T::kSecond:
      return kMicrosecondsPerSecond;
    case T::kMinute:
      return kMicrosecondsPerMinute;
    case T::kHour:
      return kMicrosecondsPerHour;
    case T::kDay:
      return kMicrosecondsPerDay;
    default:
      return std::nullopt;
  }
}

/// The months of a field that consists of months; else 0.
int MonthsOf(T field) {
  switch (field) {
    case T::kMonth:
      return 1;
    case T::kQuarter:
      return 3;
    case T::kYear:
      return 12;
    case T::kDecade:
      return 120;
    case T::kCentury:
      return 1200;
    case T::kMillennium:
      return 12000;
    default:
      return 0;
  }
}

absl::StatusOr<Value> TruncateTime(const Expr& call, std::span<const Value> arguments) {
  const Value &name = arguments[0], &time = arguments[1];
  NAM_ASSIGN_OR_RETURN(const T field, FieldOf(call, name.text, time));
  if (!Truncates(field)) return NotSupported(call, time, name.text);
  if (time.type.kind == TypeKind::kTimestampTz) return TruncateZoned(call, field, time, arguments[2]);
  const std::optional<int64_t> us = TruncateTimestamp(field, static_cast<int64_t>(time.number));
  if (!us) return DateOutOfRange(call.position);
  return Value::Timestamp(*us);
}

absl::StatusOr<Value> TruncateInterval(const Expr& call, const Value& name, const Value& time) {
  NAM_ASSIGN_OR_RETURN(const T field, FieldOf(call, name.text, time));
  const Interval from = time.interval();
  if (field == T::kDay) return Value::Span({from.months, from.days, 0});
  if (const std::optional<int64_t> unit = UnitOf(field))
    return Value::Span({from.months, from.days, Cut(from.us, *unit)});
  const int months = MonthsOf(field);
  if (months == 0) return NotSupported(call, time, name.text);
  return Value::Span({from.months - from.months % months, 0, 0});
}

// ─── Arithmetic

absl::Status IntervalOutOfRange(int position) {
  return UserError(sqlstate::kDateOutOfRange, "interval out of range", position);
}

absl::StatusOr<Value> SpanOrError(const Expr& call, const absl::StatusOr<Interval>& interval) {
  if (!interval.ok()) return IntervalOutOfRange(call.position);
  return Value::Span(*interval);
}

/// Stays within the day; ignores days and months of the interval.
Value MovedTime(const Value& time, const Value& by, int sign) {
  const auto moved =
      static_cast<int64_t>((time.number + sign * __int128{by.interval().us}) % kMicrosecondsPerDay);
  return Value::Time(moved < 0 ? moved + kMicrosecondsPerDay : moved);
}

absl::StatusOr<Value> MovedByInterval(const Expr& call, const Value& time, const Value& by, int sign) {
  if (time.type.kind == TypeKind::kTime) return MovedTime(time, by, sign);
  const absl::StatusOr<int64_t> us = AddToTimestamp(static_cast<int64_t>(time.number), by.interval(), sign);
  if (!us.ok()) return TimestampOutOfRange(call.position);
  return Value::Timestamp(*us);
}

absl::StatusOr<Value> MakeDate(const Expr& call, std::span<const Value> a) {
  const __int128 year = a[0].number, month = a[1].number, day = a[2].number;
  const bool exists = year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
                      day <= DaysInMonth(static_cast<int32_t>(year), static_cast<int32_t>(month));
  if (!exists) {
    return UserError(sqlstate::kDateOutOfRange,
                     absl::StrCat("date field value out of range: ", Int128ToString(year), "-",
                                  Int128ToString(month), "-", Int128ToString(day)),
                     call.position, "dates go from 0001-01-01 to 9999-12-31");
  }
  return Value::Date(
      DaysFromCivil({static_cast<int32_t>(year), static_cast<int32_t>(month), static_cast<int32_t>(day)}));
}

/// Turns whole days of hours into days and whole months of 30 days into months, and gives all parts one sign.
absl::StatusOr<Value> Justified(const Expr& call, const Interval& interval) {
  constexpr __int128 kDaysPerMonth = 30, kDay = kMicrosecondsPerDay;
  const bool of_hours = FunctionOf(call) != F::kJustifyDays, of_days = FunctionOf(call) != F::kJustifyHours;
  __int128 months = interval.months, days = interval.days, us = interval.us;
  if (of_hours) {
    days += us / kDay;
    us %= kDay;
  }
  if (of_days) {
    months += days / kDaysPerMonth;
    days %= kDaysPerMonth;
  }
  const auto sign = [](__int128 n) { return n > 0 ? 1 : n < 0 ? -1 : 0; };
  // A part of the other sign borrows one of the next larger.
  if (of_days && months != 0 &&
      (sign(days) == -sign(months) || (days == 0 && of_hours && sign(us) == -sign(months)))) {
    days += kDaysPerMonth * sign(months);
    months -= sign(months);
  }
  if (of_hours && sign(us) != 0 && sign(days) == -sign(us)) {
    us += kDay * sign(days);
    days -= sign(days);
  }
  return SpanOrError(call, MakeInterval(months, days, us));
}

/// Whether the spans between two timestamps, moments or times each, in any order, intersect. If one end is
/// NULL, the span begins at the other.
Value Overlap(std::span<const Value> a) {
  struct Span {
    Value from, to;
  };
  const auto span_of = [](const Value& x, const Value& y) {
    const bool swaps = x.null || (!y.null && y.number < x.number);
    return swaps ? Span{y, x} : Span{x, y};
  };
  Span first = span_of(a[0], a[1]), second = span_of(a[2], a[3]);
  if (first.from.null || second.from.null) return Value::Null(Type::Bool());
  if (first.from.number == second.from.number)
    return first.to.null || second.to.null ? Value::Null(Type::Bool()) : Value::Bool(true);
  if (first.from.number > second.from.number) std::swap(first, second);
  if (first.to.null) return Value::Null(Type::Bool());
  if (second.from.number < first.to.number) return Value::Bool(true);
  return second.to.null ? Value::Null(Type::Bool()) : Value::Bool(false);
}

}  // namespace

absl::Status TimestampOutOfRange(int position) {
  return UserError(sqlstate::kDateOutOfRange, "timestamp out of range", position,
                   "timestamps go from 0001-01-01 to 9999-12-31 23:59:59.999999");
}

std::optional<TimeField> TimeFieldOf(std::string_view name) {
  constexpr std::pair<std::string_view, T> kFields[] = {
      {"microseconds", T::kMicrosecond},
      {"microsecond", T::kMicrosecond},
      {"us", T::kMicrosecond},
      {"usec", T::kMicrosecond},
      {"usecs", T::kMicrosecond},
      {"milliseconds", T::kMillisecond},
      {"millisecond", T::kMillisecond},
      {"ms", T::kMillisecond},
      {"msec", T::kMillisecond},
      {"msecs", T::kMillisecond},
      {"second", T::kSecond},
      {"seconds", T::kSecond},
      {"sec", T::kSecond},
      {"secs", T::kSecond},
      {"s", T::kSecond},
      {"minute", T::kMinute},
      {"minutes", T::kMinute},
      {"min", T::kMinute},
      {"mins", T::kMinute},
      {"m", T::kMinute},
      {"hour", T::kHour},
      {"hours", T::kHour},
      {"hr", T::kHour},
      {"hrs", T::kHour},
      {"h", T::kHour},
      {"day", T::kDay},
      {"days", T::kDay},
      {"d", T::kDay},
      {"week", T::kWeek},
      {"weeks", T::kWeek},
      {"w", T::kWeek},
      {"month", T::kMonth},
      {"months", T::kMonth},
      {"mon", T::kMonth},
      {"mons", T::kMonth},
      {"quarter", T::kQuarter},
      {"qtr", T::kQuarter},
      {"year", T::kYear},
      {"years", T::kYear},
      {"y", T::kYear},
      {"yr", T::kYear},
      {"yrs", T::kYear},
      {"decade", T::kDecade},
      {"decades", T::kDecade},
      {"dec", T::kDecade},
      {"decs", T::kDecade},
      {"century", T::kCentury},
      {"centuries", T::kCentury},
      {"c", T::kCentury},
      {"cent", T::kCentury},
      {"millennium", T::kMillennium},
      {"millennia", T::kMillennium},
      {"mil", T::kMillennium},
      {"mils", T::kMillennium},
      {"epoch", T::kEpoch},
      {"dow", T::kDayOfWeek},
      {"isodow", T::kIsoDayOfWeek},
      {"doy", T::kDayOfYear},
      {"isoyear", T::kIsoYear},
  };
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  for (const auto& [known, field] : kFields) {
    if (lower == known) return field;
  }
  return std::nullopt;
}

int64_t FieldOfTimestamp(TimeField field, int64_t us) {
  return static_cast<int64_t>(Extract(field, PartsOf(us))->number);
}

bool Truncates(TimeField field) {
  return field == T::kWeek || UnitOf(field) || MonthsOf(field) > 0;
}

std::optional<int64_t> TruncateTimestamp(TimeField field, int64_t us) {
  const int64_t day = DayOf(us);
  if (const std::optional<int64_t> unit = UnitOf(field))
    return day * kMicrosecondsPerDay + Cut(us - day * kMicrosecondsPerDay, *unit);
  if (field == T::kWeek) {
    const int64_t monday = day - (WeekDay(day) + 6) % 7;
    return monday < kLeastDay ? std::nullopt : std::optional(monday * kMicrosecondsPerDay);
  }
  const int months = MonthsOf(field);
  if (months == 0) return std::nullopt;
  const CivilDate civil = CivilFromDays(day);
  // Centuries and millennia begin with a year 1, decades with a year 0.
  const int first = months > 120 ? 12 : 0;
  const int cut = (civil.year * 12 + civil.month - 1 - first) / months * months + first;
  if (cut < 12) return std::nullopt;
  return DaysFromCivil({cut / 12, cut % 12 + 1, 1}) * kMicrosecondsPerDay;
}

IsoWeek IsoWeekOf(int64_t day) {
  // The Thursday of a week is in the week's year.
  const int64_t thursday = day - (WeekDay(day) + 6) % 7 + 3;
  const int32_t year = CivilFromDays(thursday).year;
  return {year, static_cast<int32_t>((thursday - DaysFromCivil({year, 1, 1})) / 7 + 1)};
}

absl::StatusOr<Value> ApplyToTimes(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kExtract:
    case F::kDatePart:
      return ExtractField(call, a[0], a[1]);
    case F::kTruncateTime:
      return a[1].type.kind == TypeKind::kInterval ? TruncateInterval(call, a[0], a[1])
                                                   : TruncateTime(call, a);
    case F::kMoveForward:
      return call.type.kind == TypeKind::kTimestampTz ? ApplyToZones(call, a)
                                                      : MovedByInterval(call, a[0], a[1], 1);
    case F::kMoveBack:
      return call.type.kind == TypeKind::kTimestampTz ? ApplyToZones(call, a)
                                                      : MovedByInterval(call, a[0], a[1], -1);
    case F::kTimeBetween: {
      const __int128 us = a[0].number - a[1].number;
      if (a[0].type.kind == TypeKind::kTime) return Value::Span({0, 0, static_cast<int64_t>(us)});
      return SpanOrError(call, MakeInterval(0, us / kMicrosecondsPerDay, us % kMicrosecondsPerDay));
    }
    case F::kIntervalSum:
      return SpanOrError(call, AddIntervals(a[0].interval(), a[1].interval(), 1));
    case F::kIntervalDifference:
      return SpanOrError(call, AddIntervals(a[0].interval(), a[1].interval(), -1));
    case F::kIntervalProduct:
      return SpanOrError(call, ScaleInterval(a[0].interval(), a[1].real(), false));
    case F::kIntervalQuotient:
      if (a[1].real() == 0) return DivisionByZero(call.position);
      return SpanOrError(call, ScaleInterval(a[0].interval(), a[1].real(), true));
    case F::kAge:
      return Value::Span(AgeOf(static_cast<int64_t>(a[0].number), static_cast<int64_t>(a[1].number)));
    case F::kMakeDate:
      return MakeDate(call, a);
    case F::kJustifyDays:
    case F::kJustifyHours:
    case F::kJustifyInterval:
      return Justified(call, a[0].interval());
    case F::kToDate: {
      NAM_ASSIGN_OR_RETURN(const int64_t us, TimeOfText(call, a[0].text, a[1].text));
      return Value::Date(DayOf(us));
    }
    case F::kOverlaps:
      return Overlap(a);
    default:
      break;
  }
  if (FunctionOf(call) != F::kToChar) return ApplyToZones(call, a);
  const bool number = a[0].type.exact() || a[0].type.real();
  absl::StatusOr<Value> text = number                                  ? FormatNumber(call, a[0], a[1].text)
                               : a[0].type.kind == TypeKind::kInterval ? FormatInterval(call, a[0], a[1].text)
                               : a[0].type.kind == TypeKind::kTimestampTz ? ApplyToZones(call, a)
                                                                          : FormatTime(call, a[0], a[1].text);
  if (text.ok() && text->text.size() > kTextBytesMax) return TextTooLong(call.position);
  return text;
}

}  // namespace nam::plan
