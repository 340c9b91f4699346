#include "session/tree_run.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "execution/methods.h"
#include "execution/table_sink.h"
#include "optimizer/operator_cost.h"
#include "optimizer/plan_query.h"
#include "optimizer/table_rows.h"
#include "session/explain.h"
#include "session/loaded_rows.h"
#include "session/noted_receiver.h"
#include "session/query_result.h"
#include "session/record_rows.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// The first rows of an order are kept in memory twice, and sorted in another place.
constexpr uint64_t kTopRowsOfBudget = 4;
/// The session writes fewer rows of a table as fast itself, as one group, …
constexpr double kFewRowsOfTable = 100'000;
/// … and such that would leave most blocks of many partitions empty.
constexpr double kFewRowsOfPartition = 2'000;
/// Attempts that a server makes of a statement, unless others are lost: each leaves a group.
constexpr double kAttemptsOfServer = 2;
/// A guess; most are numbers of 8 bytes.
constexpr double kStagedBytesOfValue = 16;
/// A thread reads them in some milliseconds.
constexpr int64_t kMostFirstRows = 100'000;
/// If estimates are this far off the rest is planned again.
constexpr double kFarOff = 10;

/// Discards the rows of EXPLAIN ANALYZE.
class NoRows final : public RowReceiver {
 public:
  absl::Status Begin(const std::vector<ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const ResultBatch& rows) override {
    rows_ += rows.rows();
    return absl::OkStatus();
  }
  uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0;
};

optimizer::LoweringOptions LoweringOf(const SessionSettings& settings,
                                      const optimizer::ClusterShape& cluster) {
  using plan::Runs;
  constexpr Runs kRuns[] = {Runs::kIfMany, Runs::kNever, Runs::kAlways};
  return {.whole_tuples = settings.whole_tuples,
          .aggregate = settings.aggregate,
          .runs = kRuns[static_cast<size_t>(settings.sorts_by_runs)],
          .top_bytes_max = settings.result_bytes_max() / kTopRowsOfBudget,
          .join = settings.join,
          .build_bytes_max = settings.build_bytes_max(),
          .cluster = cluster};
}

/// Whether servers may need scratch memory.
bool MayNeedScratch(const plan::PhysicalPlan& plan) {
  return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const plan::Pipeline& pipeline) {
    const auto* groups = std::get_if<plan::AggregateSink>(&pipeline.sink);
    const auto* result = std::get_if<plan::ResultSink>(&pipeline.sink);
    return std::holds_alternative<plan::PartitionSink>(pipeline.sink) ||
           (groups != nullptr && groups->parts > 0) ||
           (result != nullptr && result->runs != plan::Runs::kNever);
  });
}

/// The rows behind the joins of a stage's claimed pipeline; of a join without keys, the pairs that it
/// compares: each row with all of the build side's.
double TuplesOf(const plan::PhysicalPlan& plan, uint32_t stage) {
  const plan::Pipeline& claimed = plan.pipelines[plan.stages[stage].claimed];
  double tuples = 0;
  for (size_t s = 0; s < claimed.steps.size(); ++s) {
    const auto* const probe = std::get_if<plan::ProbeStep>(&claimed.steps[s]);
    if (probe == nullptr) continue;
    tuples += probe->keys.empty() ? claimed.estimates[s].rows * optimizer::RowsLeft(plan, probe->build)
                                  : claimed.estimates[s + 1].rows;
  }
  return tuples;
}

/// If a stage only passes on some of its table's rows: their number, unless one thread would read for long.
uint64_t RowsPassedOn(const plan::PhysicalPlan& plan, uint32_t stage) {
  const plan::Pipeline& claimed = plan.pipelines[plan.stages[stage].claimed];
  const auto* const scan = std::get_if<plan::BlockScan>(&claimed.source);
  const auto* const result = std::get_if<plan::ResultSink>(&claimed.sink);
  if (scan == nullptr || result == nullptr || !scan->filters.empty() || !result->order.empty()) return 0;
  for (const plan::StepNode& step : claimed.steps) {
    if (!std::holds_alternative<plan::ProjectStep>(step)) return 0;
  }
  return result->limit > 0 && result->limit <= kMostFirstRows ? static_cast<uint64_t>(result->limit) : 0;
}

/// The earlier stages whose parts this one reads.
std::set<uint32_t> ReadBy(const plan::PhysicalPlan& plan, uint32_t stage) {
  std::set<uint32_t> stages;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    if (pipeline.stage != stage) continue;
    if (const auto* parts = std::get_if<plan::PartitionSource>(&pipeline.source))
      stages.insert(plan.pipelines[parts->pipeline].stage);
    if (const auto* join = std::get_if<plan::JoinSource>(&pipeline.source)) {
      stages.insert(plan.pipelines[join->probed].stage);
      stages.insert(plan.pipelines[join->probe.build].stage);
    }
  }
  return stages;
}

/// The join over parts of a stage's claimed pipeline, if any.
std::optional<JoinedParts> JoinedBy(const plan::PhysicalPlan& plan, uint32_t stage) {
  const plan::Pipeline& claimed = plan.pipelines[plan.stages[stage].claimed];
  const auto* const join = std::get_if<plan::JoinSource>(&claimed.source);
  if (join == nullptr) return std::nullopt;
  return JoinedParts{join->probed, join->probe.build, join->probe.kind};
}

}  // namespace

bool TreeRun::ReadsRecords(const plan::logical::Node& root) {
  const auto* scan = root.As<plan::logical::Scan>();
  return (scan != nullptr && scan->table->has_record()) ||
         std::any_of(root.inputs.begin(), root.inputs.end(),
                     [](const plan::logical::NodePtr& input) { return ReadsRecords(*input); });
}

absl::StatusOr<std::unique_ptr<TreeRun>> TreeRun::Make(const Options& options, plan::logical::Query query) {
  Start start;
  for (const plan::logical::Column& column : query.root->columns)
    start.columns.push_back({column.name, column.type});
  NAM_RETURN_IF_ERROR(options.files.LoadForJoins(*query.root, options.report));
  NAM_RETURN_IF_ERROR(optimizer::Rewrite(query));
  start.query = std::make_shared<const plan::logical::Query>(std::move(query));
  start.lowering = LoweringOf(options.settings, options.stages.Shape());
  auto out = std::make_unique<TreeRun>(options, std::move(start));
  NAM_RETURN_IF_ERROR(out->Plan(0));
  return out;
}

absl::Status TreeRun::Plan(size_t stages_kept) {
  RecordReads* reads = nullptr;
  if (ReadsRecords(*current_.query->root)) {
    reads = &reads_.emplace(*options_.access, options_.attachment.catalog(), options_.stages.scratch(),
                            options_.cancel);
    current_.lowering.records = reads;
  }
  NAM_ASSIGN_OR_RETURN(optimizer::LoweredTree tree,
                       optimizer::LowerTree(*current_.query, current_.lowering, facts_));
  if (reads != nullptr) reads->FillIn(tree.prepared_tables, tree.lowered.plan);
  current_.tree = std::make_shared<const optimizer::LoweredTree>(std::move(tree));
  current_.stages.resize(stages_kept);
  for (size_t s = stages_kept; s < lowered().stages.size(); ++s) {
    const optimizer::ServerStage& stage = lowered().stages[s];
    PlacedStage& placed = current_.stages.emplace_back();
    placed.tables = optimizer::StageTablesOf(plan(), lowered().tables, static_cast<uint32_t>(s));
    placed.tuples = TuplesOf(plan(), static_cast<uint32_t>(s));
    placed.first_rows = RowsPassedOn(plan(), static_cast<uint32_t>(s));
    placed.parts = stage.parts;
    placed.join = JoinedBy(plan(), static_cast<uint32_t>(s));
    NAM_ASSIGN_OR_RETURN(placed.exchanges, execution::ExchangeShapeOf(plan(), static_cast<uint32_t>(s)));
    if (stage.parts == 0) NAM_RETURN_IF_ERROR(options_.stages.FindServers(placed, reads));
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultSet> TreeRun::Run(RowReceiver& receiver) {
  options_.stages.BeginQuery();
  absl::StatusOr<ResultSet> result = RunStages(receiver);
  if (!result.ok()) result = OrWithoutScratch(result.status());
  // Attempts of a failed query may have written, too. No call waits for a lost memory server.
  if (!result.ok()) options_.stages.scratch().Use();
  options_.stages.scratch().EndQuery(/*tell=*/!absl::IsUnavailable(result.status()) &&
                                     !absl::IsCancelled(result.status()));
  return result;
}

absl::StatusOr<ResultSet> TreeRun::RunInto(LoadedRows& table) {
  table_ = &table;
  return Run(table);
}

/// Rows that do not fit would have gone to scratch memory: reports that there was none.
absl::Status TreeRun::OrWithoutScratch(const absl::Status& error) const {
  const std::optional<SqlError> sql_error = SqlErrorOf(error);
  const absl::Status& why_none = options_.stages.scratch().why_none();
  if (why_none.ok() || !sql_error.has_value() || sql_error->sqlstate != sqlstate::kOutOfMemory) return error;
  const std::optional<SqlError> of_catalog = SqlErrorOf(WithSqlState(why_none));
  const bool exhausted = of_catalog.has_value() && of_catalog->sqlstate.starts_with("53");
  return ToStatus(
      {.message = absl::StrCat("the query exceeds its memory, and there is no scratch memory for the rest: ",
                               std::string(why_none.message())),
       .hint = absl::StrCat("without scratch memory: ", sql_error->message),
       .sqlstate = exhausted ? of_catalog->sqlstate : sql_error->sqlstate});
}

/// A build side may be larger than expected, or what the session makes of files. While no row is out, the
/// query begins again, with all sides of joins by parts, or with the files' rows on servers.
absl::StatusOr<ResultSet> TreeRun::RunStages(RowReceiver& receiver) {
  NotedReceiver noted(receiver);
  absl::StatusOr<ResultSet> result = TryStages(noted);
  if (result.ok() || noted.begun()) return result;
  const plan::JoinAlgorithm way = current_.lowering.join;
  const bool other_way =
      (way == plan::JoinAlgorithm::kAuto || plan::IsStreamed(way)) && current_.lowering.build_bytes_max > 0;
  const bool by_parts = other_way && result.status().GetPayload(execution::kBuildSidesTooLarge).has_value();
  if (!by_parts) {
    NAM_ASSIGN_OR_RETURN(const bool loaded, LoadsFilesFor(result.status()));
    if (!loaded) return result;
  }
  // Pages written so far are not read.
  if (table_ != nullptr) table_->DropTaken();
  options_.stages.scratch().Use();
  options_.stages.scratch().EndQuery(/*tell=*/true);
  if (by_parts) {
    if (options_.stages.scratch().Open() == 0) return result;
    current_.lowering.join = plan::JoinAlgorithm::kAuto;
    current_.lowering.build_bytes_max = 0;
  }
  facts_.clear();
  left_.clear();
  kept_bytes_ = 0;
  replanned_.push_back(by_parts ? "Planned anew: a build side was larger than a server's memory for joins"
                                : "Planned anew: the files' rows need more memory than the session has");
  NAM_RETURN_IF_ERROR(Plan(0));
  return TryStages(noted);
}

absl::StatusOr<bool> TreeRun::LoadsFilesFor(const absl::Status& error) {
  const std::optional<SqlError> sql_error = SqlErrorOf(error);
  if (!sql_error.has_value() || sql_error->sqlstate != sqlstate::kOutOfMemory) return false;
  plan::logical::Query query{plan::logical::Clone(*current_.query->root), current_.query->relations,
                             current_.query->ctes};
  NAM_ASSIGN_OR_RETURN(const bool loaded, options_.files.LoadAll(*query.root, options_.report));
  if (loaded) current_.query = std::make_shared<const plan::logical::Query>(std::move(query));
  return loaded;
}

absl::StatusOr<ResultSet> TreeRun::TryStages(RowReceiver& receiver) {
  if (MayNeedScratch(plan()) && options_.stages.scratch().Open() == 0) {
    current_.lowering.aggregate = plan::AggregateAlgorithm::kDist;
    current_.lowering.join = plan::JoinAlgorithm::kPipelined;
    current_.lowering.runs = plan::Runs::kNever;
    NAM_RETURN_IF_ERROR(Plan(0));
  }
  for (uint32_t s = 0; s < current_.stages.size(); ++s) {
    if (lowered().stages[s].barrier) NAM_RETURN_IF_ERROR(RunBarrier(s));
  }
  QueryResult result(current_.columns, receiver);
  NAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<execution::LocalStage> local,
      result.PrepareStage(plan(), lowered().tables, options_.settings.result_bytes_max(),
                          options_.attachment.fabric(), options_.cancel, options_.stages.scratch().ForSorts(),
                          [this](auto&&... of) { return options_.files.Read(of...); }));
  TellProgress(*local);
  NAM_RETURN_IF_ERROR(FeedSession(*local));
  NAM_RETURN_IF_ERROR(local->Run());
  session_rows_ = local->rows();
  session_counters_ = local->counters();
  NAM_ASSIGN_OR_RETURN(ResultSet rows, result.Finish());
  rows.work = work_;
  return rows;
}

/// Servers report their own progress, and the session takes in their rows meanwhile.
void TreeRun::TellProgress(execution::LocalStage& local) const {
  if (!options_.stages.tells_progress()) return;
  local.OnProgress([this](uint64_t rows) { options_.stages.TellFinishing(rows); });
}

absl::Status TreeRun::RunServers(uint32_t number, const plan::PhysicalPlan& plan, const StageOutput& output) {
  PlacedStage& stage = current_.stages[number];
  for (const uint32_t read : ReadBy(plan, number)) {
    const std::vector<proto::Directory>& left = left_.at(read).directories;
    stage.inputs.insert(stage.inputs.end(), left.begin(), left.end());
  }
  const bool reads_records = reads_.has_value() && reads_->AreReadBy(plan, number);
  if (reads_records) {
    NAM_ASSIGN_OR_RETURN(stage.records, reads_->Fetch(plan, number));
    stage.servers.clear();  // they were placed by what was expected
  }
  if (stage.parts > 0 || reads_records)
    NAM_RETURN_IF_ERROR(options_.stages.FindServers(stage, reads_records ? &*reads_ : nullptr));
  NAM_RETURN_IF_ERROR(
      options_.stages.Run(options_.stages.RequestOf(plan, lowered().tables), number, stage, output));
  AddWork(stage, work_);
  return absl::OkStatus();
}

absl::Status TreeRun::RunBarrier(uint32_t number) {
  Left& left = left_[number];
  const auto room = [&](uint64_t bytes) -> absl::Status {
    if (bytes <= options_.settings.result_bytes_max() - kept_bytes_) return absl::OkStatus();
    return ToStatus({.message = absl::StrFormat("the query needs more than %d MiB of memory for its result",
                                                options_.settings.result_mib_max),
                     .hint = "SET nam.result_mib_max raises the bound",
                     .sqlstate = sqlstate::kOutOfMemory});
  };
  const auto keep = [&](const std::string& pages, uint64_t attempt) -> absl::StatusOr<bool> {
    kept_bytes_ += pages.size();
    left.pages.push_back({pages, attempt});
    return true;
  };
  const auto note = [&](proto::Directory directory) {
    options_.stages.scratch().Use();
    left.directories.push_back(std::move(directory));
    return absl::OkStatus();
  };
  NAM_RETURN_IF_ERROR(RunServers(number, plan(), {.add = keep, .room = room, .parts = note}));
  NAM_ASSIGN_OR_RETURN(const optimizer::StageFact fact, FactOf(number, left));
  const optimizer::StageFact expected = lowered().stages[number].expected;
  // The plan keeps its assumption, and so do the plans of later barriers, which must have the same stages up
  // to there.
  const double least = std::max(1.0, std::min(fact.rows, expected.rows));
  if (fact.by_parts == expected.by_parts && std::max(fact.rows, expected.rows) < kFarOff * least) {
    facts_[number] = expected;
    return absl::OkStatus();
  }
  facts_[number] = fact;
  NAM_RETURN_IF_ERROR(Plan(number + 1));
  replanned_.push_back(absl::StrFormat(
      "Planned anew behind stage %d: %.0f rows%s, where %.0f%s were expected", number, fact.rows,
      fact.by_parts ? " by parts" : "", expected.rows, expected.by_parts ? " by parts" : ""));
  return absl::OkStatus();
}

absl::StatusOr<optimizer::StageFact> TreeRun::FactOf(uint32_t number, Left& left) {
  optimizer::StageFact fact{.rows = 0, .by_parts = !left.directories.empty()};
  if (fact.by_parts) NAM_RETURN_IF_ERROR(WriteKept(plan().stages[number].claimed, left));
  for (const Left::Pages& pages : left.pages) {
    NAM_ASSIGN_OR_RETURN(const uint64_t rows, RowsOfPages(BytesOf(pages.bytes)));
    fact.rows += static_cast<double>(rows);
  }
  for (const proto::Directory& directory : left.directories) {
    for (const proto::PartPages& part : directory.parts()) fact.rows += static_cast<double>(part.rows());
  }
  return fact;
}

absl::Status TreeRun::WriteKept(uint32_t pipeline, Left& left) {
  std::unique_ptr<const execution::KeptGroups> groups;
  for (const Left::Pages& pages : left.pages) {
    NAM_ASSIGN_OR_RETURN(const uint64_t rows, RowsOfPages(BytesOf(pages.bytes)));
    if (rows == 0) continue;
    const plan::Pipeline& kept = plan().pipelines[pipeline];
    const auto* const sink = std::get_if<plan::AggregateSink>(&kept.sink);
    if (sink == nullptr || sink->parts == 0) return absl::DataLossError("rows of a stage that leaves none");
    if (groups == nullptr) {
      NAM_ASSIGN_OR_RETURN(groups, execution::KeptGroups::Make(*sink, kept.schemas.back()));
    }
    NAM_ASSIGN_OR_RETURN(left.directories.emplace_back(),
                         options_.stages.scratch().Write(*groups, BytesOf(pages.bytes), pages.attempt,
                                                         pipeline, options_.settings.result_bytes_max()));
  }
  for (const Left::Pages& pages : left.pages) kept_bytes_ -= pages.bytes.size();
  left.pages.clear();
  return absl::OkStatus();
}

absl::Status TreeRun::FeedSession(execution::LocalStage& local) {
  for (uint32_t p = 0; p < plan().pipelines.size(); ++p) {
    const plan::Pipeline& pipeline = plan().pipelines[p];
    if (pipeline.stage + 1 != plan().stages.size()) continue;
    for (const optimizer::TransactionScan& scan : current_.tree->transaction_scans) {
      if (scan.pipeline != p) continue;
      NAM_RETURN_IF_ERROR(
          FeedRecords(*options_.access, options_.cancel, scan, *lowered().tables[scan.table], local));
    }
    const auto* pages = std::get_if<plan::PageSource>(&pipeline.source);
    if (pages == nullptr || plan().pipelines[pages->pipeline].stage >= current_.stages.size()) continue;
    NAM_RETURN_IF_ERROR(FeedStage(plan().pipelines[pages->pipeline].stage, pages->pipeline, local));
  }
  return absl::OkStatus();
}

absl::Status TreeRun::FeedStage(uint32_t number, uint32_t pipeline, execution::LocalStage& local) {
  const auto kept = left_.find(number);
  if (kept == left_.end()) {
    StageOutput output = OutputTo(local, plan(), pipeline, options_.settings.result_bytes_max(),
                                  [this] { options_.stages.scratch().Use(); });
    const std::optional<plan::PhysicalPlan> writers = PlanOfWriters(pipeline);
    if (!writers.has_value()) return RunServers(number, plan(), output);
    output.table = table_;
    output.window_bytes = 0;
    return RunServers(number, *writers, output);
  }
  for (Left::Pages& pages : kept->second.pages) {
    const std::string bytes = std::move(pages.bytes);
    kept_bytes_ -= bytes.size();
    NAM_RETURN_IF_ERROR(local.Add(pipeline, BytesOf(bytes), pages.attempt));
  }
  return absl::OkStatus();
}

/// Each server's group is small if the rows are few, and a scan meets them all. The session makes one group
/// of what would leave more groups than the table may have.
std::optional<plan::PhysicalPlan> TreeRun::PlanOfWriters(uint32_t pipeline) const {
  const Choice choice = options_.settings.server_writes;
  if (table_ == nullptr || choice == Choice::kOff) return std::nullopt;
  std::optional<plan::PhysicalPlan> writers = optimizer::WithWholeRows(plan(), pipeline);
  if (!writers.has_value()) return writers;
  const plan::Pipeline& written = writers->pipelines[pipeline];
  const double rows = written.estimates.back().rows;
  const double full =
      rows * kStagedBytesOfValue * static_cast<double>(written.schemas.back().size()) /
      static_cast<double>(execution::TableSink::GroupBytes(options_.settings.result_bytes_max()));
  const double servers = options_.stages.Shape().servers;
  if (!table_->HasRoomFor(std::max(full, kAttemptsOfServer * servers))) return std::nullopt;
  if (choice == Choice::kOn) return writers;
  return rows < kFewRowsOfTable || rows < kFewRowsOfPartition * table_->partitions() ? std::nullopt : writers;
}

absl::StatusOr<std::vector<std::string>> TreeRun::Explain(bool analyze, bool json) {
  if (!analyze) return Describe(std::nullopt, json);
  Clock& clock = options_.attachment.fabric().clock();
  const int64_t started_ns = clock.NowNs();
  NoRows rows;
  NAM_RETURN_IF_ERROR(Run(rows).status());
  return Describe(Ran{rows.rows(), static_cast<double>(clock.NowNs() - started_ns) / 1e6}, json);
}

std::vector<std::string> TreeRun::Describe(const std::optional<Ran>& ran, bool json) const {
  const proto::StreamSettings settings = options_.settings.ForStreams();
  std::vector<optimizer::TransactionScan> scans = current_.tree->transaction_scans;
  if (reads_.has_value()) std::ranges::move(reads_->Scans(plan()), std::back_inserter(scans));
  ExplainedQuery query{.plan = plan(),
                       .tables = lowered().tables,
                       .settings = settings,
                       .stages = {},
                       .scans = scans,
                       .joins = lowered().joins,
                       .groups = lowered().groups,
                       .analyze = ran.has_value(),
                       .replanned = replanned_,
                       .session_rows = session_rows_,
                       .session_counters = session_counters_};
  if (ran.has_value()) {
    query.result_rows = ran->rows;
    query.result_ms = ran->ms;
  }
  for (const PlacedStage& stage : current_.stages)
    query.stages.push_back({stage.tables, stage.parts, stage.streamed(), stage.servers, stage.why_read});
  if (json) return {ExplainAsJson(query)};
  return session::Explain(query);
}

}  // namespace nam::session
