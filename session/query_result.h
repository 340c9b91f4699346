#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/sort/scratch_run.h"
#include "execution/stage_inputs.h"
#include "fabric/fabric.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "session/result_rows.h"
#include "session/session.h"

namespace nam::execution {
class LocalStage;
}

namespace nam::session {

/// The client's result of a query: the rows of the session's stage, as they come. One thread.
class QueryResult {
 public:
  QueryResult(std::vector<ResultSet::Column> columns, RowReceiver& receiver)
      : columns_(std::move(columns)), receiver_(receiver) {}

  /// Prepares the last stage of the plan, whose rows go to the receiver. `tables` are the plan's.
  /// `budget_bytes` bounds the session's memory for the query, including the receiver's. Sorts that exceed it
  /// use `scratch`; `files` reads those of the plan. This, `fabric` and `cancel` outlive the stage.
  absl::StatusOr<std::unique_ptr<execution::LocalStage>> PrepareStage(
      const plan::PhysicalPlan& plan, plan::TableMetadata tables, uint64_t budget_bytes,
      fabric::Fabric& fabric, const std::atomic<bool>& cancel, execution::SortScratch scratch = {},
      execution::FileRowsSource files = {});

  /// After the stage has run, and before it ends: the result without its rows.
  absl::StatusOr<ResultSet> Finish();

 private:
  const std::vector<ResultSet::Column> columns_;
  RowReceiver& receiver_;
  ResultRows* rows_ = nullptr;  // owned by the stage
};

/// Whether the rows of a pipeline of servers flow through the session's stage to the client, so that they may
/// come before the pipeline has ended. Others wait for a sort, groups, a build side: these take in each
/// attempt's rows at once.
bool FlowsToClient(const plan::PhysicalPlan& plan, uint32_t pipeline);

}  // namespace nam::session
