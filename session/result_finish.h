#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/memory_budget.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"
#include "optimizer/plan.h"
#include "plan/physical.h"
#include "session/result_steps.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// The coordinator's end of a query over pages of rows.
///
///     pages of groups ──▶ merged groups ──▶ HAVING, select list ──▶ DISTINCT ──▶ order ──▶ OFFSET, LIMIT
///     pages of rows   ──────────────────────────────────────────────────────────▶ order ──▶ OFFSET, LIMIT
///
/// Without an order, pages of rows become the client's values as they arrive. Rows that are equal in the
/// order stay in that of their arrival. Used by one thread.
class ResultFinish {
 public:
  /// `query`, `star` and `physical` (optimizer::Lower of `star`) outlive this, as do `clock` and `cancel`.
  /// `budget_bytes` bounds what the coordinator holds for the query, the result's values included.
  /// 54001 if an expression of the select list, HAVING or ORDER BY is too deep.
  static absl::StatusOr<std::unique_ptr<ResultFinish>> Make(const sql::BoundQuery& query,
                                                            const optimizer::Plan& star,
                                                            const plan::PhysicalPlan& physical,
                                                            uint64_t budget_bytes, Clock& clock,
                                                            const std::atomic<bool>& cancel);
  ~ResultFinish();

  /// Takes in the pages that one attempt stored (AggregateSink::Store, ResultSink::Store,
  /// OrderedRows::Store), one behind the other. They are not looked at afterwards. Nothing of them is
  /// trusted: DATA_LOSS if they are not of this plan and attempt. CANCELLED soon after `cancel` is set;
  /// RESOURCE_EXHAUSTED with 53200 beyond the budget. After an error every call returns that error.
  absl::Status Add(std::span<const std::byte> pages, uint64_t attempt);

  /// The result, once. No page may follow. Errors as of Add, and those of the query's own expressions.
  absl::StatusOr<ResultSet> Finish();

  /// The most that was held at one time.
  uint64_t bytes_most() const { return budget_.most(); }

 private:
  struct MergedGroups;
  struct DistinctRows;
  struct Ordering;
  struct ArrivingRows;

  ResultFinish(const sql::BoundQuery& query, uint64_t budget_bytes, Clock& clock,
               const std::atomic<bool>& cancel);
  absl::Status Prepare(const optimizer::Plan& star, const plan::PhysicalPlan& physical);
  absl::Status PrepareGroups(const optimizer::Plan& star, const plan::Pipeline& pipeline);
  absl::Status PrepareRows(const plan::Pipeline& pipeline);
  /// The end of what flows out of `input`; order_slots_ are set.
  absl::Status PrepareEnd(const plan::Schema& input);
  absl::StatusOr<std::vector<plan::Expr>> SelectList(const optimizer::Plan& star, const plan::Schema& groups);
  void AddOrder(size_t key, uint32_t slot);

  absl::Status AddPages(std::span<const std::byte> pages, uint64_t attempt);
  absl::StatusOr<ResultSet> FinishAll();
  absl::Status FinishGroups();
  absl::Status FinishRows();
  absl::Status FinishOrder();
  /// Runs what is left of the plan's end over a source whose chunks have the schema.
  absl::Status Run(execution::Source& source, const plan::Schema& schema, Projection* step,
                   execution::Sink& sink);
  absl::Status Combine(execution::Sink& sink);
  /// Where rows go that have the select list's columns.
  execution::Sink& end();

  const sql::BoundQuery& query_;
  execution::MemoryBudget budget_;
  execution::TaskContext context_;
  absl::Status error_;
  bool finished_ = false;

  std::vector<execution::OrderSlot> order_slots_;
  std::unique_ptr<Projection> projection_;  // of merged groups; of rows that are to be sorted
  std::unique_ptr<ResultRows> result_;
  std::unique_ptr<Ordering> ordering_;      // with ORDER BY
  std::unique_ptr<DistinctRows> distinct_;  // DISTINCT over an aggregation
  std::unique_ptr<MergedGroups> groups_;    // one of these two
  std::unique_ptr<ArrivingRows> rows_;
};

}  // namespace nam::session
