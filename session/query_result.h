#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "execution/local_stage.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "session/result_rows.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// What the client gets of a query: the rows that the session's stage leaves. One thread.
class QueryResult {
 public:
  explicit QueryResult(std::vector<ResultSet::Column> columns) : columns_(std::move(columns)) {}

  /// The last stage of the plan, whose rows come here. `tables` are the plan's. `budget_bytes` bounds what
  /// the session holds for the query, the result's values included. This, `clock` and `cancel` outlive the
  /// stage.
  absl::StatusOr<std::unique_ptr<execution::LocalStage>> PrepareStage(const plan::PhysicalPlan& plan,
                                                                      plan::TableMetadata tables,
                                                                      uint64_t budget_bytes, Clock& clock,
                                                                      const std::atomic<bool>& cancel);

  /// Once the stage has run, and before it ends.
  ResultSet Take();

 private:
  const std::vector<ResultSet::Column> columns_;
  ResultRows* rows_ = nullptr;  // of the stage
};

/// Of a bound query.
std::vector<ResultSet::Column> ColumnsOf(const sql::BoundQuery& query);

}  // namespace nam::session
