#include "session/query_result.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "execution/stage_inputs.h"

namespace nam::session {

absl::StatusOr<std::unique_ptr<execution::LocalStage>> QueryResult::PrepareStage(
    const plan::PhysicalPlan& plan, plan::TableMetadata tables, uint64_t budget_bytes, fabric::Fabric& fabric,
    const std::atomic<bool>& cancel, execution::SortScratch scratch, execution::FileRowsSource files) {
  execution::StageInputs inputs;
  inputs.plan = plan;
  inputs.tables = std::move(tables);
  inputs.stage = static_cast<uint32_t>(plan.stages.size()) - 1;
  inputs.settings.set_result_bytes_max(budget_bytes);
  inputs.sort_scratch = std::move(scratch);
  inputs.threads = fabric.capabilities().processors;
  inputs.file_rows = std::move(files);
  inputs.client_sink =
      [this](const plan::Schema& schema,
             execution::MemoryBudget& budget) -> absl::StatusOr<std::unique_ptr<execution::Sink>> {
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<ResultRows> rows,
                         ResultRows::Make(schema, columns_, receiver_, budget));
    rows_ = rows.get();
    return rows;
  };
  return execution::LocalStage::Make(std::move(inputs), fabric, cancel);
}

absl::StatusOr<ResultSet> QueryResult::Finish() {
  NAM_RETURN_IF_ERROR(rows_->End());
  ResultSet result;
  result.columns = columns_;
  result.command = absl::StrCat("SELECT ", rows_->rows());
  return result;
}

bool FlowsToClient(const plan::PhysicalPlan& plan, uint32_t pipeline) {
  uint32_t reader = 0;
  for (; reader < plan.pipelines.size(); ++reader) {
    const auto* const pages = std::get_if<plan::PageSource>(&plan.pipelines[reader].source);
    if (pages != nullptr && pages->pipeline == pipeline) break;
  }
  while (reader < plan.pipelines.size()) {
    if (reader == plan.stages.back().claimed) return true;
    const auto* const feed = std::get_if<plan::FeedSink>(&plan.pipelines[reader].sink);
    if (feed == nullptr) return false;
    reader = feed->pipeline;
  }
  return false;
}

}  // namespace nam::session
