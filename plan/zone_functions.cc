#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/function_families.h"
#include "plan/time_field.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/date_text.h"
#include "types/sql_error.h"
#include "types/time_zone.h"

/// Functions with a time zone: an argument names it, so that the result depends on nothing else.
namespace nam::plan {
namespace {

absl::StatusOr<const TimeZone*> ZoneOf(const Expr& call, const Value& name) {
  const TimeZone* zone = TimeZone::OfThread(name.text);
  return zone != nullptr ? absl::StatusOr<const TimeZone*>(zone) : UnknownZone(name.text, call.position);
}

bool IsTimestamp(int64_t us) {
  return us >= kLeastDay * kMicrosecondsPerDay && us < (kGreatestDay + 1) * kMicrosecondsPerDay;
}

absl::StatusOr<Value> InRange(const Expr& call, int64_t us) {
  if (!IsTimestamp(us)) return TimestampOutOfRange(call.position);
  return Value{call.type, false, us, {}};
}

absl::StatusOr<Value> AtZone(const Expr& call, const Value& name, const Value& time) {
  NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, name));
  const auto us = static_cast<int64_t>(time.number);
  return InRange(call, time.type.kind == TypeKind::kTimestampTz ? zone->LocalOf(us) : zone->UtcOf(us));
}

/// Months and days are those of the zone's calendar, hours those of UTC.
absl::StatusOr<Value> MovedInZone(const Expr& call, std::span<const Value> a, int sign) {
  NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, a[2]));
  auto us = static_cast<int64_t>(a[0].number);
  const Interval by = a[1].interval();
  if (zone->fixed()) {  // quick, as vectors of UTC do
    const absl::StatusOr<int64_t> local = AddToTimestamp(zone->LocalOf(us), by, sign);
    return local.ok() ? InRange(call, zone->UtcOf(*local)) : TimestampOutOfRange(call.position);
  }
  for (const Interval& part : {Interval{by.months, 0, 0}, Interval{0, by.days, 0}, Interval{0, 0, by.us}}) {
    const bool calendar = part.us == 0;
    if (part == Interval{}) continue;
    const absl::StatusOr<int64_t> moved = AddToTimestamp(calendar ? zone->LocalOf(us) : us, part, sign);
    if (!moved.ok()) return TimestampOutOfRange(call.position);
    us = calendar ? zone->UtcOf(*moved) : *moved;
  }
  return InRange(call, us);
}

absl::StatusOr<Value> OfText(const Expr& call, const Value& text, const Value& name) {
  // A moment, whatever the zone.
  if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(text.text), "epoch")) return InRange(call, 0);
  NAM_ASSIGN_OR_RETURN(const ZonedText split, SplitZoneOrError(text.text, call.position));
  const absl::StatusOr<int64_t> local = ParseTimestamp(CanonicalDateText(split.text));
  if (!local.ok()) return TimestampTextError(text.text, local.status(), call.position);
  if (split.zone) return InRange(call, split.zone->UtcOf(*local));
  NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, name));
  return InRange(call, zone->UtcOf(*local));
}

absl::StatusOr<Value> OfEpoch(const Expr& call, double seconds) {
  const double us = std::rint(seconds * 1e6);
  constexpr double kLimit = 9e18;
  if (!(us > -kLimit && us < kLimit)) return TimestampOutOfRange(call.position);
  return InRange(call, static_cast<int64_t>(us));
}

}  // namespace

absl::Status UnknownZone(std::string_view name, int position) {
  return UserError(sqlstate::kBadParameter, absl::StrCat("time zone ", Quote(name), " not recognized"),
                   position, "zones are written UTC, Europe/Berlin or +02");
}

absl::StatusOr<ZonedText> SplitZoneOrError(std::string_view text, int position) {
  ZonedText split = SplitZone(text);
  switch (split.fault) {
    case ZonedText::Fault::kNone:
      break;
    case ZonedText::Fault::kUnknownZone:
      return UnknownZone(text.substr(text.find_last_of(" \t") + 1), position);
    case ZonedText::Fault::kOffsetOutOfRange:
      return UserError(sqlstate::kBadZoneOffset, "time zone displacement out of range: " + Quote(text),
                       position);
  }
  return split;
}

absl::Status RefuseInfinity(std::string_view text, int position) {
  const std::string word = absl::AsciiStrToLower(std::string(TrimBlanks(text)));
  if (word != "infinity" && word != "-infinity") return absl::OkStatus();
  return Refusal(absl::StrCat("the date or timestamp ", Quote(word), " is not supported"), position,
                 "times go from 0001-01-01 to 9999-12-31: write one of these, or NULL");
}

absl::Status TimestampTextError(std::string_view text, const absl::Status& error, int position) {
  NAM_RETURN_IF_ERROR(RefuseInfinity(text, position));
  if (absl::IsOutOfRange(error)) {
    return UserError(sqlstate::kDateOutOfRange, "there is no such timestamp: " + Quote(text), position,
                     "timestamps go from 0001-01-01 to 9999-12-31 23:59:59.999999");
  }
  return UserError(sqlstate::kBadDate, "invalid timestamp: " + Quote(text), position,
                   "timestamps are written YYYY-MM-DD HH:MM:SS.ffffff");
}

absl::StatusOr<Value> TruncateZoned(const Expr& call, TimeField field, const Value& time, const Value& name) {
  NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, name));
  const auto us = static_cast<int64_t>(time.number);
  const int64_t local = zone->LocalOf(us);
  const std::optional<int64_t> cut = IsTimestamp(local) ? TruncateTimestamp(field, local) : std::nullopt;
  if (!cut) return DateOutOfRange(call.position);
  // Hours and less keep the offset of their moment; days begin by the zone's clocks.
  return InRange(call, field <= TimeField::kHour ? us - (local - *cut) : zone->UtcOf(*cut));
}

absl::StatusOr<Value> ApplyToZones(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kMoveForward:
      return MovedInZone(call, a, 1);
    case F::kMoveBack:
      return MovedInZone(call, a, -1);
    case F::kAtZone:
      return AtZone(call, a[0], a[1]);
    case F::kTimestampTzOfText:
      return OfText(call, a[0], a[1]);
    case F::kTextOfTimestampTz: {
      NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, a[1]));
      return Value::String(TimestampTzText(static_cast<int64_t>(a[0].number), *zone));
    }
    case F::kToTimestamp:
      return OfEpoch(call, a[0].real());
    case F::kTimestampByPattern: {
      NAM_ASSIGN_OR_RETURN(const int64_t local, TimeOfText(call, a[0].text, a[1].text));
      NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, a[2]));
      return InRange(call, zone->UtcOf(local));
    }
    case F::kToChar: {
      NAM_ASSIGN_OR_RETURN(const TimeZone* zone, ZoneOf(call, a[2]));
      return FormatTime(call, a[0], a[1].text, zone);
    }
    default:
      break;
  }
  NAM_CHECK(false, "a function of time zones");
  return Value::Null();
}

}  // namespace nam::plan
