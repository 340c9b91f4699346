#include "plan/cast.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "types/bytes.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/date_text.h"
#include "types/decimal.h"
#include "types/numeric.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

absl::Status NoSuchDecimal(const Expr& e, double x) {
  return Refusal(absl::StrCat("decimals have no ", RealText(x, /*real=*/false)), e.position,
                 "double precision has NaN and Infinity");
}

// ─── From text

absl::Status BadNumber(const Expr& e, std::string_view text) {
  const std::string type = e.type.kind == TypeKind::kDecimal ? "decimal" : TypeName(e.type);
  return UserError(sqlstate::kBadText, absl::StrCat("invalid ", type, ": ", Quote(text)), e.position);
}

absl::StatusOr<Value> TextToNumber(const Expr& e, const Value& from) {
  const absl::StatusOr<Value> number =
      e.type.kind == TypeKind::kDecimal ? ParseRounded(from.text) : ParseNumeric(from.text);
  const absl::StatusOr<double> real =
      number.ok() ? absl::StatusOr<double>(0) : ParseReal(from.text, /*real=*/false);
  if (e.type.kind == TypeKind::kDecimal && real.ok() && !std::isfinite(*real)) return NoSuchDecimal(e, *real);
  if (!number.ok())
    return absl::IsOutOfRange(number.status()) ? NumberTooLong(from.text, kMaxDecimalDigits, e.position)
                                               : BadNumber(e, from.text);
  if (e.type.kind == TypeKind::kInteger && number->type.kind != TypeKind::kInteger)
    return BadNumber(e, from.text);
  return *number;
}

absl::StatusOr<Value> TextToNumeric(const Expr& e, const Value& from) {
  const absl::StatusOr<Numeric> number = ParseNumericText(from.text);
  if (number.ok()) return Value::OfNumeric(*number);
  if (absl::IsOutOfRange(number.status())) return NumberTooLong(from.text, kMaxNumericDigits, e.position);
  const absl::StatusOr<double> real = ParseReal(from.text, /*real=*/false);
  if (real.ok() && !std::isfinite(*real)) return NoSuchDecimal(e, *real);
  return BadNumber(e, from.text);
}

absl::StatusOr<Value> TextToBool(const Expr& e, const Value& from) {
  const std::string text = absl::AsciiStrToLower(std::string(TrimBlanks(from.text)));
  if (text == "1" || text == "on") return Value::Bool(true);
  if (text == "0" || text == "of" || text == "off") return Value::Bool(false);
  // A prefix of these words is enough.
  for (const auto& [word, value] : {std::pair("true", true), {"yes", true}, {"false", false}, {"no", false}})
    if (!text.empty() && absl::StartsWith(word, text)) return Value::Bool(value);
  return UserError(sqlstate::kBadText, "invalid boolean: " + Quote(from.text), e.position,
                   "write true or false");
}

absl::StatusOr<Value> TextToDate(const Expr& e, const Value& from) {
  NAM_ASSIGN_OR_RETURN(const ZonedText split, SplitZoneOrError(from.text, e.position));
  const absl::StatusOr<int64_t> days = ParseDate(CanonicalDateText(split.text));
  if (days.ok()) return Value::Date(*days);
  NAM_RETURN_IF_ERROR(RefuseInfinity(from.text, e.position));
  if (absl::IsOutOfRange(days.status())) {
    return UserError(sqlstate::kDateOutOfRange, "there is no such date: " + Quote(from.text), e.position,
                     "dates go from 0001-01-01 to 9999-12-31");
  }
  return UserError(sqlstate::kBadDate, "invalid date: " + Quote(from.text), e.position,
                   "dates are written YYYY-MM-DD");
}

absl::StatusOr<Value> TextToTimestamp(const Expr& e, const Value& from) {
  // A zone is parsed and ignored.
  NAM_ASSIGN_OR_RETURN(const ZonedText split, SplitZoneOrError(from.text, e.position));
  const absl::StatusOr<int64_t> us = ParseTimestamp(CanonicalDateText(split.text));
  if (us.ok()) return Value::Timestamp(*us);
  return TimestampTextError(from.text, us.status(), e.position);
}

absl::StatusOr<Value> TextToTime(const Expr& e, const Value& from) {
  NAM_ASSIGN_OR_RETURN(const ZonedText split, SplitZoneOrError(from.text, e.position));
  // AM and PM follow the time of a date.
  std::string text(split.text);
  if (absl::EqualsIgnoreCase(text, "allballs")) return Value::Time(0);
  if (text.size() > 1 && (text[0] == 'T' || text[0] == 't') && absl::ascii_isdigit(text[1])) text.erase(0, 1);
  if (text.ends_with('m') || text.ends_with('M')) text = CanonicalDateText("2000-01-01 " + text);
  const absl::StatusOr<int64_t> us = ParseTime(text);
  // A place's offset from UTC depends on the day.
  const bool placed = split.zone && !split.zone->fixed() && !absl::StrContains(text, '-');
  if (us.ok() && !placed) return Value::Time(*us);
  if (absl::IsOutOfRange(us.status())) {
    return UserError(sqlstate::kDateOutOfRange, "there is no such time: " + Quote(from.text), e.position,
                     "times go from 00:00:00 to 24:00:00");
  }
  return UserError(sqlstate::kBadDate, "invalid time: " + Quote(from.text), e.position,
                   "times are written HH:MM:SS.ffffff");
}

absl::StatusOr<Value> TextToInterval(const Expr& e, const Value& from) {
  const absl::StatusOr<Interval> interval = ParseInterval(from.text);
  if (interval.ok()) return Value::Span(*interval);
  if (absl::IsOutOfRange(interval.status())) {
    const bool field = absl::StartsWith(interval.status().message(), "interval field");
    return UserError(field ? sqlstate::kIntervalFieldOverflow : sqlstate::kDateOutOfRange,
                     absl::StrCat(interval.status().message(), ": ", Quote(from.text)), e.position);
  }
  return UserError(sqlstate::kBadDate, "invalid interval: " + Quote(from.text), e.position,
                   "write interval '1 year 2 months 3 days 04:05:06'");
}

absl::StatusOr<Value> TextToReal(const Expr& e, const Value& from) {
  const bool narrow = e.type.kind == TypeKind::kReal;
  const absl::StatusOr<double> x = ParseReal(from.text, narrow);
  if (x.ok()) return narrow ? Value::Real(*x) : Value::Double(*x);
  if (absl::IsOutOfRange(x.status())) {
    return UserError(sqlstate::kNumberOutOfRange,
                     absl::StrCat(Quote(from.text), " is out of range for type ", TypeName(e.type)),
                     e.position);
  }
  return UserError(sqlstate::kBadText, "invalid " + TypeName(e.type) + ": " + Quote(from.text), e.position);
}

absl::StatusOr<Value> TextToUuid(const Expr& e, const Value& from) {
  const absl::StatusOr<__int128> number = ParseUuid(from.text);
  if (number.ok()) return UuidValue(*number);
  return UserError(sqlstate::kBadText, "invalid uuid: " + Quote(from.text), e.position,
                   "write a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
}

/// PostgreSQL has one SQLSTATE for wrong hexadecimal digits, another one for wrong escapes.
absl::StatusOr<Value> TextToBytes(const Expr& e, const Value& from) {
  absl::StatusOr<std::string> bytes = ParseBytes(from.text);
  if (bytes.ok()) return BytesValue(*std::move(bytes));
  const bool hexadecimal = absl::StartsWith(from.text, "\\x");
  return UserError(hexadecimal ? sqlstate::kBadParameter : sqlstate::kBadText,
                   absl::StrCat("invalid bytea: ", bytes.status().message()), e.position,
                   R"(write \xdeadbeef)");
}

// ─── To text

/// Fits text into `length` characters: an explicit cast cuts for char(n) and varchar(n), and char(n) is kept
/// without its blanks.
Value ToText(const Expr& e, const Value& from) {
  const bool truth = from.type.kind == TypeKind::kBool;
  Value text = Value::String(!truth ? from.ToString() : from.number != 0 ? "true" : "false");
  const uint32_t length = e.type.length;
  if (IsChar(e.type)) {
    if (length > 0) text.text.resize(EndOfCharacters(text.text, length));
    text.text.resize(WithoutBlanks(text.text).size());
  }
  text.type = e.type;
  return text;
}

// ─── Numbers

absl::StatusOr<Value> ExactNumber(const Expr& e, std::optional<__int128> n) {
  if (!n.has_value()) return NumberOutOfRange(e.position);
  if (e.type.kind == TypeKind::kInteger && !FitsInteger(*n, IntegerBytes(e)))
    return IntegerOutOfRange(IntegerBytes(e), e.position);
  if (e.type.kind == TypeKind::kDecimal && !FitsDigits(*n, DecimalDigits(e))) return NumericFieldOverflow(e);
  return Value{e.type, false, *n, {}};
}

/// As PostgreSQL: by the 15 or 6 digits that are always exact.
absl::StatusOr<Value> RealToNumber(const Expr& e, const Value& from) {
  const double x = from.real();
  if (e.type.kind == TypeKind::kInteger) {
    const std::optional<int64_t> n = IntegerOf(x);
    return n.has_value() ? ExactNumber(e, *n) : IntegerOutOfRange(IntegerBytes(e), e.position);
  }
  if (!std::isfinite(x)) return NoSuchDecimal(e, x);
  const int digits = from.type.kind == TypeKind::kReal ? 6 : 15;
  const std::string text = absl::StrFormat("%.*e", digits - 1, x);
  // The text is d.ddd…e±xx: a decimal of so many digits and an exponent.
  const size_t exponent_at = text.find('e');
  const absl::StatusOr<Value> mantissa = ParseNumber(text.substr(0, exponent_at));
  const int exponent = std::atoi(text.c_str() + exponent_at + 1);
  if (!mantissa.ok()) return NumberOutOfRange(e.position);
  const int scale = mantissa->type.scale - exponent;
  if (scale > 3 * kMaxDecimalDigits) return ExactNumber(e, 0);
  if (scale <= kMaxDecimalDigits && scale >= 0)
    return ExactNumber(e, Rescale(mantissa->number, scale, e.type.scale));
  if (scale < 0) {
    const std::optional<__int128> whole =
        -scale > kMaxDecimalDigits ? std::nullopt : Rescale(mantissa->number, 0, -scale);
    return ExactNumber(e, whole.has_value() ? Rescale(*whole, 0, e.type.scale) : std::nullopt);
  }
  // Digits after the 38th decimal: those of 10^-38 and more remain, and one for rounding.
  const int dropped = scale - kMaxDecimalDigits;
  if (dropped > digits) return ExactNumber(e, 0);
  return ExactNumber(
      e, Rescale(Rescale(mantissa->number, dropped, 0).value_or(0), kMaxDecimalDigits, e.type.scale));
}

absl::StatusOr<Value> ToNumeric(const Expr& e, const Value& from) {
  if (from.type.kind == TypeKind::kNumeric) return from;
  if (from.type.kind == TypeKind::kString) return TextToNumeric(e, from);
  if (from.type.real() && !std::isfinite(from.real())) return NoSuchDecimal(e, from.real());
  const std::optional<Numeric> number =
      from.type.kind == TypeKind::kReal     ? NumericOfReal(static_cast<float>(from.real()))
      : from.type.kind == TypeKind::kDouble ? NumericOfDouble(from.real())
                                            : FitNumeric(from.number, from.type.scale);
  return number ? absl::StatusOr<Value>(Value::OfNumeric(*number))
                : NumberTooLong(from.ToString(), kMaxNumericDigits, e.position);
}

absl::StatusOr<Value> ToReal(const Expr& e, const Value& from) {
  if (from.type.kind == TypeKind::kString) return TextToReal(e, from);
  const double x = from.type.real()                       ? from.real()
                   : from.type.kind == TypeKind::kNumeric ? NumericToDouble(from.unpacked())
                                                          : RealOf(from.number, from.type.scale);
  if (e.type.kind == TypeKind::kDouble) return Value::Double(x);
  const std::optional<double> narrowed = NarrowedToReal(x);
  if (narrowed.has_value()) return Value::Real(*narrowed);
  const bool overflow = std::abs(x) > 1;
  return UserError(sqlstate::kNumberOutOfRange,
                   overflow ? "value out of range: overflow" : "value out of range: underflow", e.position);
}

int64_t OfDay(int64_t us) {
  return us - DayOf(us) * kMicrosecondsPerDay;
}

}  // namespace

absl::Status NumericFieldOverflow(const Expr& e) {
  return UserError(sqlstate::kNumberOutOfRange, "numeric field overflow", e.position,
                   absl::StrCat("decimal(", DecimalDigits(e), ",", static_cast<int>(e.type.scale), ") has ",
                                DecimalDigits(e) - e.type.scale, " digits before the decimal point"));
}

double RealOf(__int128 unscaled, int scale) {
  // Both are exact, so their quotient is rounded once.
  constexpr __int128 kExact = __int128{1} << 53;
  constexpr int kExactPower = 22;
  if (unscaled > -kExact && unscaled < kExact && scale <= kExactPower)
    return static_cast<double>(unscaled) / static_cast<double>(PowerOfTen(scale));
  return std::strtod(absl::StrCat(Int128ToString(unscaled), "e-", scale).c_str(), nullptr);
}

std::optional<double> NarrowedToReal(double x) {
  const auto narrow = static_cast<float>(x);
  if (std::isinf(narrow) && !std::isinf(x)) return std::nullopt;
  if (narrow == 0 && x != 0) return std::nullopt;
  return static_cast<double>(narrow);
}

std::optional<int64_t> IntegerOf(double x) {
  const double whole = std::rint(x);
  constexpr double kLimit = 9223372036854775808.0;
  if (!(whole >= -kLimit && whole < kLimit)) return std::nullopt;
  return static_cast<int64_t>(whole);
}

bool CastExists(const Type& from, const Type& to) {
  const TypeKind a = from.kind, b = to.kind;
  if (a == b) return true;
  // These casts need a time zone, and are functions.
  if (a == TypeKind::kTimestampTz || b == TypeKind::kTimestampTz) return false;
  if (a == TypeKind::kString || b == TypeKind::kString) return true;
  const auto number = [](const Type& type) { return type.exact() || type.real(); };
  if (number(from) && number(to)) return true;
  const auto truth = [](TypeKind x, TypeKind y) { return x == TypeKind::kBool && y == TypeKind::kInteger; };
  const auto time = [](TypeKind x, TypeKind y) { return x == TypeKind::kDate && y == TypeKind::kTimestamp; };
  const bool of_day = (a == TypeKind::kTime && b == TypeKind::kInterval) ||
                      (b == TypeKind::kTime && (a == TypeKind::kInterval || a == TypeKind::kTimestamp));
  return truth(a, b) || truth(b, a) || time(a, b) || time(b, a) || of_day;
}

absl::StatusOr<Value> Cast(const Expr& e, Value from) {
  const bool text = from.type.kind == TypeKind::kString;
  switch (e.type.kind) {
    case TypeKind::kString:
      return ToText(e, from);
    case TypeKind::kDate:
      if (text) return TextToDate(e, from);
      if (from.type.kind == TypeKind::kTimestamp)
        return Value::Date(DayOf(static_cast<int64_t>(from.number)));
      return from;
    case TypeKind::kTimestamp:
      if (text) return TextToTimestamp(e, from);
      if (from.type.kind == TypeKind::kDate)
        return Value::Timestamp(static_cast<int64_t>(from.number) * kMicrosecondsPerDay);
      return from;
    case TypeKind::kInterval:
      if (from.type.kind == TypeKind::kTime) return Value::Span({0, 0, static_cast<int64_t>(from.number)});
      return text ? TextToInterval(e, from) : std::move(from);
    case TypeKind::kUuid:
      return text ? TextToUuid(e, from) : std::move(from);
    case TypeKind::kBytes:
      return text ? TextToBytes(e, from) : std::move(from);
    case TypeKind::kTimestampTz:
      return from;
    case TypeKind::kTime:
      if (text) return TextToTime(e, from);
      if (from.type.kind == TypeKind::kInterval) return Value::Time(OfDay(from.interval().us));
      if (from.type.kind == TypeKind::kTimestamp)
        return Value::Time(OfDay(static_cast<int64_t>(from.number)));
      return from;
    case TypeKind::kBool:
      if (text) return TextToBool(e, from);
      return Value::Bool(from.number != 0);
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return ToReal(e, from);
    case TypeKind::kNumeric:
      return ToNumeric(e, from);
    default:
      break;
  }
  if (from.type.real()) return RealToNumber(e, from);
  if (from.type.kind == TypeKind::kNumeric)
    return ExactNumber(e, NumericToDecimal(from.unpacked(), e.type.scale));
  if (text) {
    NAM_ASSIGN_OR_RETURN(from, TextToNumber(e, from));
  }
  return ExactNumber(e, Rescale(from.number, from.type.scale, e.type.scale));
}

}  // namespace nam::plan
