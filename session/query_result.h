#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "execution/local_stage.h"
#include "execution/sort/scratch_run.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "session/result_rows.h"
#include "session/session.h"

namespace nam::session {

/// What the client gets of a query: the rows that the session's stage leaves, as it leaves them. One thread.
class QueryResult {
 public:
  QueryResult(std::vector<ResultSet::Column> columns, RowReceiver& receiver)
      : columns_(std::move(columns)), receiver_(receiver) {}

  /// The last stage of the plan, whose rows go to the receiver. `tables` are the plan's. `budget_bytes`
  /// bounds what the session holds for the query, what the receiver holds included. Sorts that it has no room
  /// for go to `scratch`. This, `clock` and `cancel` outlive the stage.
  absl::StatusOr<std::unique_ptr<execution::LocalStage>> PrepareStage(const plan::PhysicalPlan& plan,
                                                                      plan::TableMetadata tables,
                                                                      uint64_t budget_bytes, Clock& clock,
                                                                      const std::atomic<bool>& cancel,
                                                                      execution::SortScratch scratch = {});

  /// Once the stage has run, and before it ends: all but the rows.
  absl::StatusOr<ResultSet> Finish();

 private:
  const std::vector<ResultSet::Column> columns_;
  RowReceiver& receiver_;
  ResultRows* rows_ = nullptr;  // of the stage
};

/// Whether the rows that a pipeline of servers leaves flow through the session's stage to the client, so that
/// they may come before the pipeline has ended. Others wait behind a sort, groups, a build side: there each
/// attempt's are taken in at once.
bool FlowsToClient(const plan::PhysicalPlan& plan, uint32_t pipeline);

}  // namespace nam::session
