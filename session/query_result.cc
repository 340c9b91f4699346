#include "session/query_result.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::session {

absl::StatusOr<std::unique_ptr<execution::LocalStage>> QueryResult::PrepareStage(
    const plan::PhysicalPlan& plan, plan::TableMetadata tables, uint64_t budget_bytes, Clock& clock,
    const std::atomic<bool>& cancel) {
  execution::StageInputs inputs;
  inputs.plan = plan;
  inputs.tables = std::move(tables);
  inputs.stage = static_cast<uint32_t>(plan.stages.size()) - 1;
  inputs.settings.set_result_bytes_max(budget_bytes);
  inputs.client_sink =
      [this](const plan::Schema& schema,
             execution::MemoryBudget& budget) -> absl::StatusOr<std::unique_ptr<execution::Sink>> {
    std::vector<Type> types;
    for (const ResultSet::Column& column : columns_) types.push_back(column.type);
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<ResultRows> rows,
                         ResultRows::Make(schema, std::move(types), budget));
    rows_ = rows.get();
    return rows;
  };
  return execution::LocalStage::Make(std::move(inputs), clock, cancel);
}

ResultSet QueryResult::Take() {
  ResultSet result;
  result.columns = columns_;
  result.rows = std::move(rows_->rows());
  result.command = absl::StrCat("SELECT ", result.rows.size());
  return result;
}

std::vector<ResultSet::Column> ColumnsOf(const sql::BoundQuery& query) {
  std::vector<ResultSet::Column> columns;
  for (const sql::OutputColumn& column : query.select) columns.push_back({column.name, column.expr.type});
  return columns;
}

}  // namespace nam::session
