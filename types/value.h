#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "types/interval.h"
#include "types/numeric.h"
#include "types/real.h"
#include "types/type.h"

namespace nam {

inline constexpr int64_t kMicrosecondsPerSecond = 1'000'000;
inline constexpr int64_t kMicrosecondsPerMinute = 60 * kMicrosecondsPerSecond;
inline constexpr int64_t kMicrosecondsPerHour = 60 * kMicrosecondsPerMinute;
inline constexpr int64_t kMicrosecondsPerDay = 24 * kMicrosecondsPerHour;

/// The day of a timestamp.
constexpr int64_t DayOf(int64_t us) {
  return us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
}

/// One SQL value, for uses where speed is irrelevant: literals, results, the reference evaluator.
struct Value {
  Type type;
  bool null = true;
  /// A bool, integer, date, time or timestamp with or without time zone; an unscaled decimal; OrderedBits of
  /// double or real; a packed interval or numeric.
  __int128 number = 0;
  std::string text;  // string

  static Value Null(Type type = {}) { return {type, true, 0, {}}; }
  static Value Bool(bool b) { return {Type::Bool(), false, b, {}}; }
  static Value Integer(__int128 n) { return {Type::Integer(), false, n, {}}; }
  static Value Decimal(__int128 unscaled, uint8_t scale) {
    return {Type::Decimal(scale), false, unscaled, {}};
  }
  static Value Date(int64_t days) { return {Type::Date(), false, days, {}}; }
  static Value Timestamp(int64_t us) { return {Type::Timestamp(), false, us, {}}; }
  static Value TimestampTz(int64_t us) { return {Type::TimestampTz(), false, us, {}}; }
  static Value Time(int64_t us) { return {Type::Time(), false, us, {}}; }
  static Value Double(double x) { return {Type::Double(), false, OrderedBits(x), {}}; }
  static Value Real(double x) { return {Type::Real(), false, OrderedBits(static_cast<float>(x)), {}}; }
  static Value Span(const Interval& interval) {
    return {Type::Interval(), false, PackInterval(interval), {}};
  }
  static Value OfNumeric(const Numeric& n) { return {Type::Numeric(), false, PackNumeric(n), {}}; }
  static Value String(std::string s) { return {Type::String(), false, 0, std::move(s)}; }

  /// Requires double or real.
  double real() const { return FromOrderedBits(static_cast<int64_t>(number)); }
  Interval interval() const { return UnpackInterval(number); }
  /// Requires a numeric.
  Numeric unpacked() const { return UnpackNumeric(number); }

  /// Text for users: booleans are t and f, dates ISO 8601, timestamps with a time zone in UTC. The caller
  /// prints NULL.
  std::string ToString() const;
};

/// Total order of two non-null values of comparable types (numbers compare across scales;
/// strings by bytes): negative, 0, positive.
int Compare(const Value& a, const Value& b);

__int128 PowerOfTen(int exponent);
std::string Int128ToString(__int128 n);
/// Parses `digits[.digits]` with an optional sign as a decimal of the text's own scale (an integer if 0).
absl::StatusOr<Value> ParseNumber(std::string_view text);
/// Parses `YYYY-MM-DD` with one- or two-digit month and day, or `YYYYMMDD`; accepts surrounding blanks, and a
/// well-formed time, which it ignores. INVALID_ARGUMENT if the form is wrong, OUT_OF_RANGE if the day does
/// not exist.
absl::StatusOr<int64_t> ParseDate(std::string_view text);
/// Parses a date, then `HH:MM[:SS[.fraction]]` after blanks or T, as microseconds, rounded.
absl::StatusOr<int64_t> ParseTimestamp(std::string_view text);

}  // namespace nam
