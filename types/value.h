#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "types/interval.h"
#include "types/real.h"
#include "types/type.h"

namespace nam {

inline constexpr int64_t kMicrosecondsPerDay = int64_t{24} * 3600 * 1000000;

/// One SQL value, used where speed does not matter: literals, results, the reference evaluator.
struct Value {
  Type type;
  bool null = true;
  /// bool, integer, date, time, timestamp with and without time zone; unscaled decimal; OrderedBits of double
  /// and real; a packed interval.
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
  static Value String(std::string s) { return {Type::String(), false, 0, std::move(s)}; }

  /// Of double and real.
  double real() const { return FromOrderedBits(static_cast<int64_t>(number)); }
  Interval interval() const { return UnpackInterval(number); }

  /// As printed to a user: `NULL` is the caller's business, booleans are t and f, dates ISO 8601, timestamps
  /// with a time zone those of UTC.
  std::string ToString() const;
};

/// Total order of two non-null values of comparable types (numbers compare across scales;
/// strings by bytes): negative, 0, positive.
int Compare(const Value& a, const Value& b);

__int128 PowerOfTen(int exponent);
std::string Int128ToString(__int128 n);
/// `digits[.digits]` with an optional sign, to a decimal of the text's own scale (an integer if none).
absl::StatusOr<Value> ParseNumber(std::string_view text);
/// `YYYY-MM-DD` with one or two digits of month and day, or `YYYYMMDD`; blanks around, and a time behind it
/// that is not looked at but for its form. INVALID_ARGUMENT if it is written otherwise, OUT_OF_RANGE if there
/// is no such day.
absl::StatusOr<int64_t> ParseDate(std::string_view text);
/// A date, then `HH:MM[:SS[.fraction]]` behind blanks or T; microseconds, rounded.
absl::StatusOr<int64_t> ParseTimestamp(std::string_view text);

}  // namespace nam
