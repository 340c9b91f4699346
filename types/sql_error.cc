#include "types/sql_error.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/edit_distance.h"
#include "base/exhausted.h"
#include "types/type.h"

namespace nam {
namespace {

constexpr char kPayload[] = "nam.sql.SqlError";

absl::StatusCode CodeOf(const std::string& state) {
  if (state == sqlstate::kNotSupported) return absl::StatusCode::kUnimplemented;
  if (state == sqlstate::kNumberOutOfRange || state == sqlstate::kDateOutOfRange) {
    return absl::StatusCode::kOutOfRange;
  }
  if (state == sqlstate::kCancelled) return absl::StatusCode::kCancelled;
  if (state.substr(0, 2) == "53") return absl::StatusCode::kResourceExhausted;
  // Retryable: the connection is lost, or a server is unavailable now.
  if (state.substr(0, 2) == "08" || state.substr(0, 3) == "57P") return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInvalidArgument;
}

/// The SQLSTATE of an error that the user's text did not cause.
const char* StateOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kCancelled:
      return sqlstate::kCancelled;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return sqlstate::kConnectionFailure;
    case absl::StatusCode::kResourceExhausted:
      return sqlstate::kInsufficientResources;
    case absl::StatusCode::kFailedPrecondition:
      return sqlstate::kWrongState;
    case absl::StatusCode::kAborted:
      return sqlstate::kSerializationFailure;
    case absl::StatusCode::kNotFound:
      return sqlstate::kUndefinedTable;
    case absl::StatusCode::kAlreadyExists:
      return sqlstate::kDuplicateObject;
    case absl::StatusCode::kInvalidArgument:
      return sqlstate::kBadParameter;
    case absl::StatusCode::kOutOfRange:
      return sqlstate::kNumberOutOfRange;
    case absl::StatusCode::kUnimplemented:
      return sqlstate::kNotSupported;
    case absl::StatusCode::kPermissionDenied:
      return sqlstate::kNoPrivilege;
    case absl::StatusCode::kUnauthenticated:
      return sqlstate::kInvalidAuthorization;
    case absl::StatusCode::kDataLoss:
      return sqlstate::kDataCorrupted;
    default:
      return sqlstate::kInternalError;
  }
}

/// Like the above, but more precise if the error names an exhausted resource.
const char* StateOf(const absl::Status& error) {
  const auto exhausted = error.GetPayload(kExhaustedPayload);
  if (exhausted == "memory" || exhausted == "process") return sqlstate::kOutOfMemory;
  if (exhausted == "disk") return sqlstate::kDiskFull;
  return StateOf(error.code());
}

/// A message may quote megabytes of the user's text.
void Shorten(std::string& message) {
  constexpr size_t kMostBytes = 600;
  if (message.size() <= kMostBytes) return;
  size_t end = kMostBytes;
  while (end > 0 && (message[end] & 0xc0) == 0x80) --end;
  message.resize(end);
  message += "…";
}

void SetPayload(const SqlError& error, absl::Status& status) {
  const nlohmann::json payload = {{"message", error.message},
                                  {"position", error.position},
                                  {"hint", error.hint},
                                  {"sqlstate", error.sqlstate}};
  status.SetPayload(kPayload,
                    absl::Cord(payload.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace

absl::Status ToStatus(const SqlError& whole) {
  SqlError error = whole;
  Shorten(error.message);
  Shorten(error.hint);
  std::string text = error.message;
  if (!error.hint.empty()) absl::StrAppend(&text, " (", error.hint, ")");
  absl::Status status(CodeOf(error.sqlstate), text);
  SetPayload(error, status);
  return status;
}

std::optional<SqlError> SqlErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  const auto json = nlohmann::json::parse(std::string(*payload), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  SqlError error;
  const auto text = [&](const char* key, std::string& to) {
    if (const auto it = json.find(key); it != json.end() && it->is_string()) to = *it;
  };
  text("message", error.message);
  text("hint", error.hint);
  text("sqlstate", error.sqlstate);
  if (const auto it = json.find("position"); it != json.end() && it->is_number_integer())
    error.position = *it;
  return error;
}

absl::Status UserError(const char* state, std::string message, int position, std::string hint) {
  return ToStatus({std::move(message), position, std::move(hint), state});
}

absl::Status Refusal(std::string message, int position, std::string hint) {
  return UserError(sqlstate::kNotSupported, std::move(message), position, std::move(hint));
}

absl::Status NumberOutOfRange(int position) {
  return UserError(sqlstate::kNumberOutOfRange, "the result has more than 38 digits", position,
                   "cast an operand to a decimal of fewer decimals");
}

absl::Status SumOutOfRange() {
  return UserError(sqlstate::kNumberOutOfRange, "a sum has more than 38 digits", -1,
                   "cast the argument to a decimal of fewer decimals");
}

absl::Status NumericOutOfRange(int position) {
  return UserError(sqlstate::kNumberOutOfRange, "the result has more than 36 digits before its point",
                   position, "cast an operand to double precision");
}

absl::Status NumberTooLong(std::string_view number, int digits, int position) {
  constexpr size_t kShownMost = 60;
  const bool numeric = digits < kMaxDecimalDigits;
  std::string shown(number.substr(0, kShownMost));
  if (number.size() > kShownMost) absl::StrAppend(&shown, "…");
  return UserError(sqlstate::kNumberOutOfRange,
                   absl::StrCat("the number ", shown, " has more than ", digits, " digits",
                                numeric ? " before its point" : ""),
                   position,
                   numeric ? "decimal(38, 0) has room for 38, and double precision for any, as 15 digits"
                           : "double precision has room for any, as 15 digits");
}

absl::Status DateOutOfRange(int position) {
  return UserError(sqlstate::kDateOutOfRange, "date out of range", position,
                   "dates go from 0001-01-01 to 9999-12-31");
}

absl::Status DivisionByZero(int position) {
  return UserError(sqlstate::kDivisionByZero, "division by zero", position,
                   "NULLIF(x, 0) as the divisor gives NULL instead");
}

absl::Status IntegerOutOfRange(int bytes, int position) {
  const std::string name = bytes == 2 ? "smallint" : bytes == 4 ? "integer" : "bigint";
  return UserError(sqlstate::kNumberOutOfRange, absl::StrCat(name, " out of range"), position,
                   absl::StrCat(bytes == 4 ? "an " : "a ", name, " has ", 8 * bytes, " bits"));
}

absl::Status WithSqlState(const absl::Status& error) {
  if (error.ok() || SqlErrorOf(error).has_value()) return error;
  absl::Status with = error;
  std::string message(error.message());
  Shorten(message);
  SetPayload({.message = std::move(message), .sqlstate = StateOf(error)}, with);
  return with;
}

std::string Quote(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 128;
  if (name.size() > kLongestName) return {};
  const std::string wanted = Lower(name);
  const int most_edits = std::max(1, static_cast<int>(name.size()) / 3);
  int best = most_edits + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const int distance = EditDistance(wanted, Lower(candidate));
    // Replacing the only letter is no resemblance.
    if (distance >= best || distance >= static_cast<int>(candidate.size())) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest.empty() ? "" : "did you mean " + Quote(nearest) + "?";
}

}  // namespace nam
