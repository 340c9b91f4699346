#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "plan/function.h"
#include "plan/time_field.h"
#include "types/time_zone.h"

/// The functions by topic; plan/function.cc calls them.
namespace nam::plan {

using F = Function;

absl::StatusOr<Value> ApplyToText(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToNumbers(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToTimes(const Expr& call, std::span<const Value> arguments);
/// Functions with a time zone among their arguments, and to_timestamp.
absl::StatusOr<Value> ApplyToZones(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToMatches(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToBits(const Expr& call, std::span<const Value> arguments);

/// An integer from a length, a place or a code point.
inline Value UnsignedValue(size_t n) {
  return Value::Integer(static_cast<int64_t>(n));
}

/// 54000 for a text of more than kTextBytesMax.
absl::Status TextTooLong(int position);
/// Formats by the pattern of format(), which is not NULL.
absl::StatusOr<std::string> FormatText(const Expr& call, std::span<const Value> arguments);
/// Parses a text by to_timestamp's pattern, to microseconds.
absl::StatusOr<int64_t> TimeOfText(const Expr& call, std::string_view text, std::string_view pattern);

absl::StatusOr<Value> ApplyToBytes(const Expr& call, std::span<const Value> arguments);
/// abs, round, ln and other functions of numbers, over numerics.
absl::StatusOr<Value> ApplyToOwnScales(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToNumerics(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToIntervals(const Expr& call, std::span<const Value> arguments);

/// date_trunc for a timestamp with time zone.
absl::StatusOr<Value> TruncateZoned(const Expr& call, TimeField field, const Value& time, const Value& zone);

/// Returns 22023: there is no time zone of this name.
absl::Status UnknownZone(std::string_view name, int position);
/// Splits a text into its timestamp and its zone. 22023 or 22009 if the zone is invalid.
absl::StatusOr<ZonedText> SplitZoneOrError(std::string_view text, int position);
/// Returns 0A000 if the text is infinity, which dates and timestamps do not have here.
absl::Status RefuseInfinity(std::string_view text, int position);
/// Returns 22007 or 22008 for a text that ParseTimestamp rejects with `error`.
absl::Status TimestampTextError(std::string_view text, const absl::Status& error, int position);

/// Formats by to_char's patterns. `zone`: for a timestamp with time zone.
absl::StatusOr<Value> FormatTime(const Expr& call, const Value& time, std::string_view pattern,
                                 const TimeZone* zone = nullptr);
absl::StatusOr<Value> FormatInterval(const Expr& call, const Value& interval, std::string_view pattern);
absl::StatusOr<Value> FormatNumber(const Expr& call, const Value& number, std::string_view pattern);

}  // namespace nam::plan
