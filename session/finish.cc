#include "session/finish.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/row_order.h"
#include "plan/aggregate.h"
#include "plan/expression.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using plan::Expr;
using plan::Op;

struct OutputRow {
  std::vector<Value> values;
  std::vector<Value> order;
};

std::string Fingerprint(const Expr& expr) {
  return plan::ToString(expr, [](const Expr& e) {
    return absl::StrCat("#", static_cast<int>(e.op), ".", e.column.table, ".", e.column.column, ".", e.index);
  });
}

absl::Status CancelledIf(const std::atomic<bool>& cancel) {
  return cancel.load(std::memory_order_relaxed) ? absl::CancelledError("cancelled") : absl::OkStatus();
}

absl::Status AddGroups(const sql::BoundQuery& query, execution::PartialMerger& merger,
                       const std::atomic<bool>& cancel, std::vector<OutputRow>& out) {
  std::vector<execution::MergedGroup>& groups = merger.groups();
  if (groups.empty() && query.group_by.empty()) {  // an aggregation without GROUP BY always has one row
    groups.emplace_back().aggregates.resize(query.aggregates.size());
  }
  for (execution::MergedGroup& group : groups) {
    NAM_RETURN_IF_ERROR(CancelledIf(cancel));
    std::vector<Value> aggregates;
    for (size_t a = 0; a < query.aggregates.size(); ++a) {
      NAM_ASSIGN_OR_RETURN(Value value,
                           execution::PartialMerger::Finish(query.aggregates[a], group.aggregates[a]));
      aggregates.push_back(std::move(value));
    }
    const plan::Resolver resolve = [&](const Expr& e) {
      return e.op == Op::kGroup ? group.keys[static_cast<size_t>(e.index)]
                                : aggregates[static_cast<size_t>(e.index)];
    };
    if (query.having) {
      NAM_ASSIGN_OR_RETURN(const Value keep, plan::Evaluate(*query.having, resolve));
      if (keep.null || keep.number == 0) continue;
    }
    OutputRow& row = out.emplace_back();
    for (const sql::OutputColumn& column : query.select) {
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(column.expr, resolve));
      row.values.push_back(std::move(value));
    }
    for (const plan::OrderKey& key : query.order_by) {
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(key.expr, resolve));
      row.order.push_back(std::move(value));
    }
  }
  return absl::OkStatus();
}

/// SELECT DISTINCT over plain rows arrives as groups of whole rows; its order keys are select columns.
absl::Status AddDistinctRows(const sql::BoundQuery& query, execution::PartialMerger& merger,
                             std::vector<OutputRow>& out) {
  std::vector<size_t> order_columns;
  for (const plan::OrderKey& key : query.order_by) {
    const std::string wanted = Fingerprint(key.expr);
    const auto found =
        std::find_if(query.select.begin(), query.select.end(),
                     [&](const sql::OutputColumn& c) { return Fingerprint(c.expr) == wanted; });
    if (found == query.select.end()) {
      return ToStatus({.message = "for SELECT DISTINCT, ORDER BY expressions must appear in the select list",
                       .position = key.expr.position,
                       .hint = "add the expression to the select list",
                       .sqlstate = "42P10"});
    }
    order_columns.push_back(static_cast<size_t>(found - query.select.begin()));
  }
  for (execution::MergedGroup& group : merger.groups()) {
    OutputRow& row = out.emplace_back();
    for (size_t column : order_columns) row.order.push_back(group.keys[column]);
    row.values = std::move(group.keys);
  }
  return absl::OkStatus();
}

/// As std::stable_sort, but it ends soon after `cancel` is set.
absl::Status SortRows(const sql::BoundQuery& query, const std::atomic<bool>& cancel,
                      std::vector<OutputRow>& rows) {
  constexpr size_t kRunRows = 4096;
  const auto before = [&](const OutputRow& a, const OutputRow& b) {
    return execution::StandsBefore(query.order_by, a.order, b.order);
  };
  const auto at = [&rows](size_t row) {
    return rows.begin() + static_cast<ptrdiff_t>(std::min(row, rows.size()));
  };
  for (size_t from = 0; from < rows.size(); from += kRunRows) {
    NAM_RETURN_IF_ERROR(CancelledIf(cancel));
    std::stable_sort(at(from), at(from + kRunRows), before);
  }
  std::vector<OutputRow> merged;
  for (size_t run = kRunRows; run < rows.size(); run *= 2) {
    merged.clear();
    merged.reserve(rows.size());
    for (size_t from = 0; from < rows.size(); from += 2 * run) {
      auto left = at(from), right = at(from + run);
      const auto left_end = right, right_end = at(from + 2 * run);
      while (left != left_end || right != right_end) {
        if (merged.size() % kRunRows == 0) NAM_RETURN_IF_ERROR(CancelledIf(cancel));
        const bool take_right = left == left_end || (right != right_end && before(*right, *left));
        merged.push_back(std::move(take_right ? *right++ : *left++));
      }
    }
    rows.swap(merged);
  }
  return absl::OkStatus();
}

void RemoveDuplicates(std::vector<OutputRow>& rows) {
  absl::flat_hash_set<std::string> seen;
  std::erase_if(rows, [&](const OutputRow& row) {
    std::string stored;
    for (const Value& value : row.values) execution::PutValue(stored, value);
    return !seen.insert(std::move(stored)).second;
  });
}

}  // namespace

execution::PartialMerger MakeMerger(const optimizer::Plan& plan) {
  std::vector<Type> types;
  for (const Expr& expr : plan.aggregated ? plan.group_by : plan.output) types.push_back(expr.type);
  return execution::PartialMerger(
      std::move(types), plan.aggregates,
      plan.aggregated ? execution::PartialKind::kGroups : execution::PartialKind::kRows);
}

absl::StatusOr<ResultSet> Finish(const sql::BoundQuery& query, const optimizer::Plan& plan,
                                 execution::PartialMerger& merger, const std::atomic<bool>& cancel) {
  std::vector<OutputRow> rows;
  if (query.aggregated) {
    NAM_RETURN_IF_ERROR(AddGroups(query, merger, cancel, rows));
    if (query.distinct) RemoveDuplicates(rows);
  } else if (plan.aggregated) {
    NAM_RETURN_IF_ERROR(AddDistinctRows(query, merger, rows));
  } else {
    for (std::vector<Value>& values : merger.rows()) {
      OutputRow& row = rows.emplace_back();
      const auto order = values.begin() + static_cast<ptrdiff_t>(query.select.size());
      row.order.assign(std::make_move_iterator(order), std::make_move_iterator(values.end()));
      values.erase(order, values.end());
      row.values = std::move(values);
    }
  }
  NAM_RETURN_IF_ERROR(CancelledIf(cancel));
  if (!query.order_by.empty()) NAM_RETURN_IF_ERROR(SortRows(query, cancel, rows));
  ResultSet result;
  for (const sql::OutputColumn& column : query.select)
    result.columns.push_back({column.name, column.expr.type});
  const auto total = static_cast<int64_t>(rows.size());
  const int64_t first = std::min(query.offset, total);
  const int64_t last = first + std::min(total - first, query.limit.value_or(total));
  for (int64_t i = first; i < last; ++i)
    result.rows.push_back(std::move(rows[static_cast<size_t>(i)].values));
  result.command = absl::StrCat("SELECT ", result.rows.size());
  return result;
}

}  // namespace nam::session
