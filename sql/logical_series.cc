#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/logical_select.h"
#include "types/sql_error.h"

/// generate_series.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::logical::Series;

bool IsTime(const Type& type) {
  return type.kind == TypeKind::kDate || type.kind == TypeKind::kTimestamp;
}

absl::Status NoSuchSeries(const std::vector<Expr>& arguments, int position) {
  const auto name = [](std::string* out, const Expr& argument) {
    absl::StrAppend(out, ExpressionBuilder::IsUntyped(argument) ? "unknown" : TypeName(argument.type));
  };
  const std::string call = absl::StrCat("generate_series(", absl::StrJoin(arguments, ", ", name), ")");
  const bool untyped = std::all_of(arguments.begin(), arguments.end(), ExpressionBuilder::IsUntyped);
  if (untyped && (arguments.size() == 2 || arguments.size() == 3)) {
    return UserError("42725", absl::StrCat("function ", call, " is not unique"), position,
                     "write numbers without quotes, or TIMESTAMP '…'");
  }
  return UserError(sqlstate::kNoSuchOperator, absl::StrCat("function does not exist: ", call), position,
                   "it takes two or three whole numbers or decimals, or two timestamps and an interval");
}

/// Timestamps by an interval.
absl::Status SettleTimes(ExpressionBuilder& builder, std::vector<Expr>& ends) {
  for (size_t i = 0; i < 2; ++i) {
    NAM_RETURN_IF_ERROR(builder.Settle(ends[i], Type::Timestamp()));
    if (ends[i].type.kind != TypeKind::kDate) continue;
    const int position = ends[i].position;
    NAM_ASSIGN_OR_RETURN(ends[i], builder.Cast(std::move(ends[i]), Type::Timestamp(), position));
  }
  return builder.Settle(ends[2], Type::Interval());
}

/// Whole numbers, or decimals, which get the decimals of the one that has the most.
absl::Status SettleNumbers(ExpressionBuilder& builder, std::vector<Expr>& ends, int position) {
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
    ends.push_back(std::move(end));
  }
  const auto any = [&](auto&& is) { return std::any_of(ends.begin(), ends.end(), is); };
  const bool times = any([](const Expr& end) { return IsTime(end.type); });
  const bool numbers = any([](const Expr& end) { return end.type.numeric(); });
  if (ends.size() < 2 || ends.size() > 3 || times == numbers || (times && ends.size() == 2))
    return NoSuchSeries(ends, position);
  const std::vector<Expr> written = ends;
  NAM_RETURN_IF_ERROR(times ? SettleTimes(select.builder(), ends)
                            : SettleNumbers(select.builder(), ends, position));
  const bool settled =
      times ? ends[0].type.kind == TypeKind::kTimestamp && ends[1].type.kind == TypeKind::kTimestamp &&
                  ends[2].type.kind == TypeKind::kInterval
            : ends[0].type.numeric() && ends[0].type == ends[1].type && ends[0].type == ends[2].type;
  if (!settled) return NoSuchSeries(written, position);
  return Series{std::move(ends[0]), std::move(ends[1]), std::move(ends[2]), {}};
}

}  // namespace nam::sql
