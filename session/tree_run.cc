#include "session/tree_run.h"

#include <span>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "optimizer/plan_query.h"
#include "session/explain.h"
#include "session/no_rows.h"
#include "session/query_result.h"
#include "types/sql_error.h"

namespace nam::session {

absl::StatusOr<std::unique_ptr<TreeRun>> TreeRun::Make(const Options& options,
                                                       plan::logical::Query query) {
  std::unique_ptr<TreeRun> out(new TreeRun(options));
  for (const plan::logical::Column& column : query.root->columns)
    out->columns_.push_back({column.name, column.type});
  NAM_ASSIGN_OR_RETURN(
      out->tree_,
      optimizer::PlanQuery(std::move(query), {.whole_tuples = options.settings.whole_tuples}));
  for (const optimizer::ServerStage& stage : out->tree_.lowered.stages) {
    PreparedStage& prepared = out->stages_.emplace_back();
    prepared.plan = stage.star;
    prepared.tables = stage.tables;
    prepared.extended = stage.extended;
    NAM_RETURN_IF_ERROR(options.stages.FindServers(prepared, nullptr));
  }
  return out;
}

absl::StatusOr<ResultSet> TreeRun::Run(RowReceiver& receiver) {
  if (tree_.transaction_scans.empty()) return RunStages(receiver);
  if (options_.records == nullptr) {
    return ToStatus({.message = "this session runs no transactions", .hint = "", .sqlstate = "0A000"});
  }
  return options_.records->InTransaction([&] { return RunStages(receiver); });
}

/// What pipelines of the session's stage take in comes in their order, so that what they wait for is there.
absl::StatusOr<ResultSet> TreeRun::RunStages(RowReceiver& receiver) {
  const plan::TableMetadata& tables = tree_.lowered.tables;
  QueryResult result(columns_, receiver);
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<execution::LocalStage> local,
                       result.PrepareStage(plan(), tables, options_.settings.result_bytes_max(),
                                           options_.attachment.fabric().clock(), options_.cancel));
  const proto::AttemptRequest request = options_.stages.RequestOf(plan());
  QueryWork work;
  for (uint32_t p = 0; p < plan().pipelines.size(); ++p) {
    if (plan().pipelines[p].stage + 1 != plan().stages.size()) continue;
    for (const optimizer::TransactionScan& scan : tree_.transaction_scans) {
      if (scan.pipeline != p) continue;
      NAM_RETURN_IF_ERROR(options_.records->Feed(scan, *tables[scan.table], *local));
    }
    const auto* pages = std::get_if<plan::PageSource>(&plan().pipelines[p].source);
    if (pages == nullptr || plan().pipelines[pages->pipeline].stage >= stages_.size()) continue;
    const uint32_t number = plan().pipelines[pages->pipeline].stage;
    NAM_RETURN_IF_ERROR(
        options_.stages.Run(request, number, stages_[number],
                            OutputTo(*local, plan(), pages->pipeline, options_.settings.result_bytes_max())));
    AddWork(stages_[number], work);
  }
  NAM_RETURN_IF_ERROR(local->Run());
  session_rows_ = local->rows();
  NAM_ASSIGN_OR_RETURN(ResultSet rows, result.Finish());
  rows.work = work;
  return rows;
}

absl::StatusOr<std::vector<std::string>> TreeRun::Explain(bool analyze, bool json) {
  const proto::StreamSettings settings = options_.settings.ForStreams();
  ExplainedQuery query{
      .plan = plan(), .tables = tree_.lowered.tables, .settings = settings, .stages = {}, .analyze = analyze};
  if (analyze) {
    Clock& clock = options_.attachment.fabric().clock();
    const int64_t started_ns = clock.NowNs();
    NoRows rows;
    NAM_RETURN_IF_ERROR(Run(rows).status());
    query.session_rows = session_rows_;
    query.result_rows = rows.rows();
    query.result_ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
  }
  for (const PreparedStage& stage : stages_)
    query.stages.push_back({stage.plan, stage.tables, stage.extended, stage.servers, stage.why_read});
  if (json) return std::vector<std::string>{ExplainAsJson(query)};
  return session::Explain(query);
}

}  // namespace nam::session
