#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "plan/time_field.h"
#include "sql/expression_builder.h"
#include "types/sql_error.h"
#include "types/time_zone.h"

/// Timestamps with time zone: operations that depend on the session's zone become calls that name it.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::Function;
using plan::IsLiteral;
using plan::MakeLiteral;

bool IsZoned(const Expr& e) {
  return e.type.kind == TypeKind::kTimestampTz;
}

bool IsText(const Expr& e) {
  return ExpressionBuilder::IsUntyped(e) || e.type.kind == TypeKind::kString;
}

Expr ZoneLiteral(std::string_view zone, int position) {
  return MakeLiteral(Value::String(std::string(zone)), position);
}

std::vector<Expr> Operands(Expr a, Expr b) {
  std::vector<Expr> operands;
  operands.push_back(std::move(a));
  operands.push_back(std::move(b));
  return operands;
}

/// Whether to_char's pattern prints the zone.
bool MayShowZone(const Expr& pattern) {
  const std::string text = absl::AsciiStrToLower(pattern.literal.text);
  return !IsLiteral(pattern) || absl::StrContains(text, "tz") || absl::StrContains(text, "of");
}

/// Checks a constant zone; UTC gets one spelling, an interval becomes its offset.
absl::Status ResolveZone(Expr& zone) {
  if (!IsLiteral(zone) || zone.literal.null) return absl::OkStatus();
  if (zone.type.kind == TypeKind::kInterval) {
    const Interval offset = zone.literal.interval();
    if (offset.months != 0 || offset.days != 0) {
      return UserError(sqlstate::kBadParameter, "interval time zone must not include months or days",
                       zone.position);
    }
    zone = ZoneLiteral(NameOfOffset(static_cast<int32_t>(offset.us / kMicrosecondsPerSecond)), zone.position);
  }
  if (!ExpressionBuilder::IsUntyped(zone) && zone.type.kind != TypeKind::kString) return absl::OkStatus();
  std::string& name = zone.literal.text;
  if (absl::AsciiStrToUpper(name) == kUtc) name = kUtc;
  if (TimeZone::OfThread(name) != nullptr) return absl::OkStatus();
  return UserError(sqlstate::kBadParameter, absl::StrCat("time zone ", Quote(name), " not recognized"),
                   zone.position, "zones are written UTC, Europe/Berlin or +02");
}

}  // namespace

bool ConvertsTimes(TypeKind from, TypeKind to) {
  const auto dated = [](TypeKind kind) {
    return kind == TypeKind::kDate || kind == TypeKind::kTimestamp || kind == TypeKind::kTimestampTz;
  };
  if (dated(from) && dated(to)) return true;
  if (to == TypeKind::kTime)
    return from == TypeKind::kTimestamp || from == TypeKind::kTimestampTz || from == TypeKind::kInterval;
  return from == TypeKind::kTime && to == TypeKind::kInterval;
}

absl::StatusOr<Expr> ExpressionBuilder::AtZone(std::string_view zone, Expr time, int position) const {
  return FunctionNode(Function::kAtZone, Operands(ZoneLiteral(zone, position), std::move(time)), position);
}

absl::StatusOr<Expr> ExpressionBuilder::CastZoned(Expr a, const Type& type, int position) const {
  if (type.kind == TypeKind::kTimestampTz) {
    if (a.type.kind == TypeKind::kString) {
      return FunctionNode(Function::kTimestampTzOfText, Operands(std::move(a), ZoneLiteral(zone_, position)),
                          position);
    }
    NAM_ASSIGN_OR_RETURN(a, Cast(std::move(a), Type::Timestamp(), position));
    return AtZone(zone_, std::move(a), position);
  }
  if (type.kind == TypeKind::kString) {
    NAM_ASSIGN_OR_RETURN(a, FunctionNode(Function::kTextOfTimestampTz,
                                         Operands(std::move(a), ZoneLiteral(zone_, position)), position));
  } else {
    NAM_ASSIGN_OR_RETURN(a, AtZone(zone_, std::move(a), position));
  }
  return Cast(std::move(a), type, position);
}

absl::Status ExpressionBuilder::MeetUnzoned(Expr& expr, const Expr& other) const {
  const bool unzoned = other.type.kind == TypeKind::kDate || other.type.kind == TypeKind::kTimestamp;
  if (!IsZoned(expr) || !IsLiteral(expr) || expr.literal.null || !unzoned || IsLiteral(other))
    return absl::OkStatus();
  const TimeZone* zone = TimeZone::OfThread(zone_);
  if (zone == nullptr || !zone->fixed()) return absl::OkStatus();
  const int position = expr.position;
  NAM_ASSIGN_OR_RETURN(expr, CastZoned(std::move(expr), Type::Timestamp(), position));
  return absl::OkStatus();
}

absl::StatusOr<Expr> ExpressionBuilder::FieldSource(std::string_view field, Expr time, int position) const {
  if (!IsZoned(time)) return time;
  if (field == "epoch") return AtZone(kUtc, std::move(time), position);
  if (!field.starts_with("timezone")) return AtZone(zone_, std::move(time), position);
  NAM_ASSIGN_OR_RETURN(Expr local, AtZone(zone_, time, position));
  NAM_ASSIGN_OR_RETURN(Expr utc, AtZone(kUtc, std::move(time), position));
  return FunctionNode(Function::kTimeBetween, Operands(std::move(local), std::move(utc)), position);
}

absl::Status ExpressionBuilder::GiveZone(std::string_view name, std::vector<Expr>& operands,
                                         int position) const {
  const bool pair = operands.size() == 2;
  if (name == "timezone" && pair && operands[1].type.kind == TypeKind::kTime) {
    return Refusal("AT TIME ZONE of a time is not supported", position,
                   "there is no time with time zone: write a timestamp");
  }
  if (name == "timezone" && pair) return ResolveZone(operands[0]);
  if (name == "date_trunc" && operands.size() == 3) return ResolveZone(operands[2]);
  if (name == "date_trunc" && pair && operands[1].type.kind == TypeKind::kDate) {
    // As in PostgreSQL, which prefers the type.
    NAM_ASSIGN_OR_RETURN(operands[1], CastZoned(std::move(operands[1]), Type::TimestampTz(), position));
  }
  if (name == "to_char" && pair && operands[0].type.kind == TypeKind::kDate && MayShowZone(operands[1])) {
    NAM_ASSIGN_OR_RETURN(operands[0], CastZoned(std::move(operands[0]), Type::TimestampTz(), position));
  }
  if (name == "to_timestamp" && pair && std::all_of(operands.begin(), operands.end(), IsText))
    operands.push_back(ZoneLiteral(zone_, position));
  if (std::none_of(operands.begin(), operands.end(), IsZoned)) return absl::OkStatus();
  if ((name == "date_trunc" || name == "to_char") && pair) operands.push_back(ZoneLiteral(zone_, position));
  if (name == "concat" || name == "concat_ws" || name == "format") {
    for (Expr& operand : operands) {
      if (!IsZoned(operand)) continue;
      NAM_ASSIGN_OR_RETURN(operand, CastZoned(std::move(operand), Type::String(), position));
    }
  }
  if (name == "age") {
    for (Expr& operand : operands) {
      if (!IsZoned(operand)) continue;
      NAM_ASSIGN_OR_RETURN(operand, AtZone(zone_, std::move(operand), position));
    }
  }
  if (name != "date_part" || !pair) return absl::OkStatus();
  if (!IsLiteral(operands[0]) || operands[0].literal.null) {
    return Refusal("date_part(x, timestamp with time zone) is not supported", position,
                   "name the field by a constant");
  }
  const std::string field = absl::AsciiStrToLower(operands[0].literal.text);
  NAM_ASSIGN_OR_RETURN(operands[1], FieldSource(field, std::move(operands[1]), position));
  operands[0].literal.text = UnzonedField(field);
  return absl::OkStatus();
}

std::string ExpressionBuilder::UnzonedField(std::string_view field) {
  return field == "timezone"          ? "epoch"
         : field == "timezone_hour"   ? "hour"
         : field == "timezone_minute" ? "minute"
                                      : std::string(field);
}

}  // namespace nam::sql
