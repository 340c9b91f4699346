#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "types/type.h"

namespace nam {

inline constexpr int64_t kMicrosecondsPerDay = int64_t{24} * 3600 * 1000000;

/// One SQL value, used where speed does not matter: literals, results, the reference evaluator.
struct Value {
  Type type;
  bool null = true;
  __int128 number = 0;  // bool, integer, date, timestamp; unscaled decimal
  std::string text;     // string

  static Value Null(Type type = {}) { return {type, true, 0, {}}; }
  static Value Bool(bool b) { return {Type::Bool(), false, b, {}}; }
  static Value Integer(__int128 n) { return {Type::Integer(), false, n, {}}; }
  static Value Decimal(__int128 unscaled, uint8_t scale) {
    return {Type::Decimal(scale), false, unscaled, {}};
  }
  static Value Date(int64_t days) { return {Type::Date(), false, days, {}}; }
  static Value Timestamp(int64_t us) { return {Type::Timestamp(), false, us, {}}; }
  static Value String(std::string s) { return {Type::String(), false, 0, std::move(s)}; }

  /// As printed to a user: `NULL` is the caller's business, booleans are t and f, dates ISO 8601.
  std::string ToString() const;
};

/// Total order of two non-null values of comparable types (numbers compare across scales;
/// strings by bytes): negative, 0, positive.
int Compare(const Value& a, const Value& b);

__int128 PowerOfTen(int exponent);
std::string Int128ToString(__int128 n);
/// `digits[.digits]` with an optional sign, to a decimal of the text's own scale (an integer if none).
absl::StatusOr<Value> ParseNumber(std::string_view text);
/// ISO 8601 `YYYY-MM-DD`, validated.
absl::StatusOr<int64_t> ParseDate(std::string_view text);
/// `YYYY-MM-DD[ HH:MM[:SS[.fraction]]]` (or T for the blank), validated; microseconds, rounded.
absl::StatusOr<int64_t> ParseTimestamp(std::string_view text);

}  // namespace nam
