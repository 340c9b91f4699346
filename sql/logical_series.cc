#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_select.h"
#include "types/sql_error.h"

/// generate_series.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::logical::Series;

bool IsTime(const Type& type) {
  return type.kind == TypeKind::kDate || type.kind == TypeKind::kTimestamp ||
         type.kind == TypeKind::kTimestampTz;
}

absl::Status NoSuchSeries(const std::vector<Expr>& arguments, int position) {
  const auto name = [](std::string* out, const Expr& argument) {
    absl::StrAppend(out, ExpressionBuilder::IsUntyped(argument) ? "unknown" : ShownType(argument));
  };
  const std::string call = absl::StrCat("generate_series(", absl::StrJoin(arguments, ", ", name), ")");
  const bool untyped = std::all_of(arguments.begin(), arguments.end(), ExpressionBuilder::IsUntyped);
  if (untyped && (arguments.size() == 2 || arguments.size() == 3)) {
    return UserError(sqlstate::kAmbiguousFunction, absl::StrCat("function ", call, " is not unique"),
                     position, "write numbers without quotes, or TIMESTAMP '…'");
  }
  return UserError(sqlstate::kNoSuchOperator, absl::StrCat("function does not exist: ", call), position,
                   "it takes two or three whole numbers or decimals, or two timestamps and an interval");
}

/// Timestamps by an interval: with time zone unless one of them is without and none with, as in PostgreSQL.
absl::Status ResolveTimes(ExpressionBuilder& builder, std::vector<Expr>& ends, const std::string& zone,
                          int position) {
  const auto either = [&](TypeKind kind) { return ends[0].type.kind == kind || ends[1].type.kind == kind; };
  const bool zoned = either(TypeKind::kTimestampTz) || !either(TypeKind::kTimestamp);
  const Type type = zoned ? Type::TimestampTz() : Type::Timestamp();
  for (size_t i = 0; i < 2; ++i) {
    NAM_RETURN_IF_ERROR(builder.ResolveType(ends[i], type));
    if (ends[i].type == type) continue;
    const int at = ends[i].position;
    NAM_ASSIGN_OR_RETURN(ends[i], builder.Cast(std::move(ends[i]), type, at));
  }
  NAM_RETURN_IF_ERROR(builder.ResolveType(ends[2], Type::Interval()));
  // The series moves in UTC, where months and days of other zones do not begin.
  const Expr& step = ends[2];
  const bool hours =
      plan::IsLiteral(step) &&
      (step.literal.null || (step.literal.interval().months == 0 && step.literal.interval().days == 0));
  if (!zoned || hours || zone == kUtc) return absl::OkStatus();
  return Refusal(
      "generate_series of timestamps with time zone by days or months is not supported outside of UTC",
      position, "make a series of timestamps, and write s AT TIME ZONE 'Europe/Berlin'");
}

/// Whole numbers, or decimals, which get the most decimals of any.
absl::Status ResolveNumbers(ExpressionBuilder& builder, std::vector<Expr>& ends, int position) {
  if (ends.size() == 2) ends.push_back(plan::MakeLiteral(Value::Integer(1), position));
  return builder.Unify({&ends[0], &ends[1], &ends[2]}, "generate_series");
}

}  // namespace

absl::StatusOr<Series> BindSeries(LogicalSelect& select, const Node& call, const FromScope& left) {
  const int position = call.position();
  NAM_RETURN_IF_ERROR(call.Only({"funcname", "args", "funcformat"}));
  std::vector<Expr> ends;
  const LogicalSelect::Within within(select, left);
  for (const Node& argument : call.List("args")) {
    NAM_ASSIGN_OR_RETURN(Expr end, select.BindUntyped(argument, Clause::kFunctionInFrom));
    if (select.UsesSubquery(end)) {
      return Refusal("a subquery in generate_series is not supported", position,
                     "compute it in a subquery in FROM, to the left");
    }
    ExpressionBuilder::AsKnownScale(end);
    ends.push_back(std::move(end));
  }
  // An untyped end may become the wanted type.
  const auto fits = [](const Expr& end, auto&& is) {
    return ExpressionBuilder::IsUntyped(end) || is(end.type);
  };
  const auto all_fit = [&](auto&& is, size_t count) {
    return std::all_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const Expr& end) { return fits(end, is); });
  };
  const auto number = [](const Type& type) { return type.numeric(); };
  const auto span = [](const Type& type) { return type.kind == TypeKind::kInterval; };
  const bool untyped = std::all_of(ends.begin(), ends.end(), ExpressionBuilder::IsUntyped);
  if (untyped || ends.size() < 2 || ends.size() > 3) return NoSuchSeries(ends, position);
  const auto own = std::find_if(ends.begin(), ends.end(),
                                [](const Expr& end) { return end.type.kind == TypeKind::kNumeric; });
  if (own != ends.end()) {
    return Refusal("a series of numbers whose scale depends on the row is not supported", own->position,
                   "round them to a number of decimals, as in round(x, 2)");
  }
  if (all_fit(number, ends.size())) {
    NAM_RETURN_IF_ERROR(ResolveNumbers(select.builder(), ends, position));
  } else if (ends.size() == 3 && all_fit(IsTime, 2) && fits(ends[2], span)) {
    NAM_RETURN_IF_ERROR(ResolveTimes(select.builder(), ends, call.text().time().zone, position));
  } else {
    return NoSuchSeries(ends, position);
  }
  return Series{std::move(ends[0]), std::move(ends[1]), std::move(ends[2]), {}};
}

}  // namespace nam::sql
