#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/lower.h"
#include "plan/check.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/post_order.h"
#include "plan/slot_of.h"
#include "types/sql_error.h"

namespace nam::optimizer {
namespace {

using plan::Expr;
using plan::Op;

/// The same over the slots of groups: their keys, then their aggregates.
absl::StatusOr<Expr> OverGroups(const Expr& expr, size_t keys) {
  NAM_RETURN_IF_ERROR(plan::ForPostOrder(expr, [](const Expr&) { return absl::OkStatus(); }));
  Expr out = expr;
  std::vector<Expr*> open{&out};
  while (!open.empty()) {
    Expr& e = *open.back();
    open.pop_back();
    if (e.op == Op::kGroup || e.op == Op::kAggregate) {
      e.column = {0, e.index + (e.op == Op::kAggregate ? static_cast<int>(keys) : 0)};
      e.op = Op::kColumn;
      e.index = -1;
    }
    for (Expr& child : e.children) open.push_back(&child);
  }
  return out;
}

/// The place of an expression of ORDER BY in the select list.
std::optional<uint32_t> SelectedAs(const sql::BoundQuery& query, const Expr& key) {
  const auto found =
      std::find_if(query.select.begin(), query.select.end(),
                   [&](const sql::OutputColumn& column) { return plan::SameExpr(column.expr, key); });
  if (found == query.select.end()) return std::nullopt;
  return static_cast<uint32_t>(found - query.select.begin());
}

absl::Status OrderedBySomethingElse(const Expr& key) {
  return UserError(sqlstate::kBadColumnReference,
                   "for SELECT DISTINCT, ORDER BY expressions must appear in the select list", key.position,
                   "add the expression to the select list");
}

/// How many rows in an order are enough; -1: all.
int64_t RowsWanted(const sql::BoundQuery& query) {
  int64_t rows = 0;
  if (!query.limit.has_value() || __builtin_add_overflow(*query.limit, query.offset, &rows)) return -1;
  return rows;
}

class FinishLowering {
 public:
  FinishLowering(const sql::BoundQuery& query, const Plan& star, plan::PhysicalPlan& plan, bool ordered)
      : query_(query), star_(star), plan_(plan), ordered_(ordered) {
    NAM_CHECK(!plan_.pipelines.empty() && !plan_.stages.empty());
    // A stage that is the session's already goes on.
    if (plan_.stages.back().site == plan::Stage::Site::kSession) plan_.stages.pop_back();
    stage_ = static_cast<uint32_t>(plan_.stages.size());
  }

  absl::Status Run() {
    if (plan_.pipelines.back().stage == stage_ && !star_.aggregated) {
      open_ = std::move(plan_.pipelines.back());
      plan_.pipelines.pop_back();
    } else {
      NAM_RETURN_IF_ERROR(Open(Last()));
    }
    NAM_RETURN_IF_ERROR(star_.aggregated ? Groups() : Rows());
    NAM_RETURN_IF_ERROR(End());
    plan_.stages.push_back({.claimed = Last(), .result = {}, .site = plan::Stage::Site::kSession});
    return plan::Check(plan_);
  }

 private:
  const plan::Schema& schema() const { return open_.schemas.back(); }
  uint32_t Last() const { return static_cast<uint32_t>(plan_.pipelines.size()) - 1; }

  /// A pipeline over what another one has left.
  absl::Status Open(uint32_t before) {
    const plan::Pipeline& from = plan_.pipelines[before];
    NAM_ASSIGN_OR_RETURN(plan::Schema left, plan::SinkOutput(from));
    const double rows = from.estimates.back().rows;
    open_ = {.source = plan::PageSource{before},
             .steps = {},
             .sink = {},
             .schemas = {std::move(left)},
             .estimates = {{rows, 1}},
             .after = {before},
             .stage = stage_};
    return absl::OkStatus();
  }

  absl::Status Append(plan::StepNode step) {
    NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::StepOutput(plan_, step, schema()));
    open_.steps.push_back(std::move(step));
    open_.schemas.push_back(std::move(flows));
    open_.estimates.push_back(open_.estimates.back());
    return absl::OkStatus();
  }

  void Close(plan::SinkNode sink) {
    open_.sink = std::move(sink);
    plan_.pipelines.push_back(std::move(open_));
  }
  /// What has been opened ends here, and its rows go on in another pipeline.
  absl::Status Through(plan::SinkNode sink) {
    Close(std::move(sink));
    return Open(Last());
  }

  /// Merged groups, HAVING, the select list, DISTINCT.
  absl::Status Groups() {
    const auto& partial = std::get<plan::AggregateSink>(plan_.pipelines.back().sink);
    if (partial.phase == plan::AggregateSink::Phase::kPartial) NAM_RETURN_IF_ERROR(Merge(partial));
    return GroupsEnd();
  }

  absl::Status Merge(const plan::AggregateSink& partial) {
    plan::AggregateSink merge{.group_by = plan::SlotExprs(schema()),
                              .aggregates = partial.aggregates,
                              .phase = plan::AggregateSink::Phase::kFinal};
    merge.group_by.resize(partial.group_by.size());
    for (plan::Aggregate& aggregate : merge.aggregates) {
      Expr argument;
      argument.type = aggregate.argument.type;
      argument.literal = Value::Null(argument.type);
      aggregate.argument = std::move(argument);
    }
    return Through(std::move(merge));
  }

  absl::Status GroupsEnd() {
    if (query_.aggregated && query_.having.has_value()) {
      NAM_ASSIGN_OR_RETURN(Expr having, OverGroups(*query_.having, query_.group_by.size()));
      NAM_RETURN_IF_ERROR(Append(plan::FilterStep{{std::move(having)}}));
    }
    plan::ProjectStep list;
    NAM_ASSIGN_OR_RETURN(list.outputs, SelectList());
    NAM_RETURN_IF_ERROR(Append(std::move(list)));
    if (!query_.aggregated || !query_.distinct) return absl::OkStatus();
    return Through(plan::AggregateSink{.group_by = plan::SlotExprs(schema()),
                                       .aggregates = {},
                                       .phase = plan::AggregateSink::Phase::kWhole});
  }

  /// The select list over the groups' slots, and behind it what ORDER BY needs besides.
  absl::StatusOr<std::vector<Expr>> SelectList() {
    std::vector<Expr> outputs;
    if (query_.aggregated) {
      NAM_CHECK(schema().size() == query_.group_by.size() + query_.aggregates.size());
      for (const sql::OutputColumn& column : query_.select) {
        NAM_ASSIGN_OR_RETURN(Expr output, OverGroups(column.expr, query_.group_by.size()));
        outputs.push_back(std::move(output));
      }
    } else {
      // SELECT DISTINCT over plain rows: groups of whole rows.
      NAM_CHECK(star_.group_by.size() == query_.select.size() && schema().size() == query_.select.size());
      outputs = plan::SlotExprs(schema());
    }
    for (const plan::OrderKey& by : query_.order_by) {
      NAM_RETURN_IF_ERROR(plan::ForPostOrder(by.expr, [](const Expr&) { return absl::OkStatus(); }));
      std::optional<uint32_t> slot = SelectedAs(query_, by.expr);
      if (!slot.has_value()) {
        if (query_.distinct) return OrderedBySomethingElse(by.expr);
        NAM_ASSIGN_OR_RETURN(Expr output, OverGroups(by.expr, query_.group_by.size()));
        slot = static_cast<uint32_t>(outputs.size());
        outputs.push_back(std::move(output));
      }
      AddOrder(by, *slot);
    }
    return outputs;
  }

  /// Servers put out the select list, then what ORDER BY needs.
  absl::Status Rows() {
    NAM_CHECK(schema().size() == query_.select.size() + query_.order_by.size());
    for (size_t k = 0; k < query_.order_by.size(); ++k)
      AddOrder(query_.order_by[k], static_cast<uint32_t>(query_.select.size() + k));
    return absl::OkStatus();
  }

  void AddOrder(const plan::OrderKey& by, uint32_t slot) {
    order_.push_back({slot, by.descending, by.nulls_first});
  }

  /// ORDER BY, OFFSET and LIMIT, and the columns that the client sees.
  absl::Status End() {
    if (!order_.empty() && !ordered_)
      NAM_RETURN_IF_ERROR(Through(plan::ResultSink{.order = order_, .limit = RowsWanted(query_)}));
    if (query_.limit.has_value() || query_.offset > 0)
      NAM_RETURN_IF_ERROR(
          Append(plan::LimitStep{.rows = query_.limit.value_or(-1), .offset = query_.offset}));
    if (schema().size() > query_.select.size()) {
      plan::ProjectStep visible{plan::SlotExprs(schema())};
      visible.outputs.resize(query_.select.size());
      NAM_RETURN_IF_ERROR(Append(std::move(visible)));
    }
    Close(plan::ResultSink{});
    return absl::OkStatus();
  }

  const sql::BoundQuery& query_;
  const Plan& star_;
  plan::PhysicalPlan& plan_;
  const bool ordered_;
  uint32_t stage_ = 0;
  plan::Pipeline open_;
  std::vector<plan::Order> order_;  // by slots of what reaches the sort
};

}  // namespace

absl::Status LowerFinish(const sql::BoundQuery& query, const Plan& star, plan::PhysicalPlan& plan,
                         bool ordered) {
  return FinishLowering(query, star, plan, ordered).Run();
}

}  // namespace nam::optimizer
