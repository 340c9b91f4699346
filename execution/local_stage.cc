#include "execution/local_stage.h"

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/stored_groups.h"
#include "execution/budget_array.h"
#include "execution/prepared_stage.h"
#include "execution/scan/record_feed.h"
#include "execution/scan/stored_rows.h"
#include "execution/stage_inputs.h"

namespace nam::execution {
namespace {

constexpr std::atomic<bool> kNotLeaving = false;

/// Accounts for pages while they are read.
class Held {
 public:
  Held(MemoryBudget& budget, uint64_t bytes) : budget_(budget), bytes_(budget.Reserve(bytes) ? bytes : 0) {}
  ~Held() { budget_.Release(bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  uint64_t bytes() const { return bytes_; }

 private:
  MemoryBudget& budget_;
  const uint64_t bytes_;
};

}  // namespace

/// A pipeline whose rows come from outside.
struct LocalStage::Fed {
  uint32_t number = 0;
  std::unique_ptr<StoredGroups> groups;  // takes in groups; otherwise there is a task
  std::unique_ptr<const RowsPlan> rows_plan;
  StoredRows* rows = nullptr;  // the task's source: one of these two
  RecordFeed* records = nullptr;
  std::unique_ptr<PipelineTask> task;
  bool started = false;
  bool done = false;  // wants no more
};

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Make(StageInputs inputs, Clock& clock,
                                                             const std::atomic<bool>& cancel) {
  NAM_CHECK(inputs.stage < inputs.plan.stages.size() &&
                inputs.plan.stages[inputs.stage].site == plan::Stage::Site::kSession,
            "a stage of the session");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStage> stage,
                       PreparedStage::Make(std::move(inputs), kNotLeaving));
  std::unique_ptr<LocalStage> made(new LocalStage(std::move(stage), clock, cancel));
  for (const uint32_t number : made->stage_->numbers()) {
    if (made->stage_->pipeline(number).source != nullptr) continue;
    NAM_RETURN_IF_ERROR(made->stage_->Explained(number, made->PrepareFed(number)));
  }
  return made;
}

LocalStage::LocalStage(std::unique_ptr<PreparedStage> stage, Clock& clock, const std::atomic<bool>& cancel)
    : stage_(std::move(stage)),
      context_(clock, stage_->result_budget(), cancel),
      complete_(stage_->plan().pipelines.size()),
      rows_(stage_->plan().pipelines.size()),
      counters_(stage_->plan().pipelines.size()) {}

LocalStage::~LocalStage() = default;

bool LocalStage::Wants(uint32_t pipeline) const {
  return !fed_.at(pipeline)->done;
}

uint64_t LocalStage::bytes_most() const {
  return stage_->result_budget().most();
}

uint32_t LocalStage::KeyOf(uint32_t number) const {
  const auto* const pages = std::get_if<plan::PageSource>(&stage_->plan().pipelines[number].source);
  return pages == nullptr ? number : pages->pipeline;
}

absl::Status LocalStage::PrepareFed(uint32_t number) {
  PreparedPipeline& pipeline = stage_->pipeline(number);
  std::unique_ptr<Fed>& known = fed_[KeyOf(number)];
  if (known != nullptr) return absl::UnimplementedError("rows of another stage that two pipelines read");
  known = std::make_unique<Fed>();
  Fed& fed = *known;
  fed.number = number;
  if (pipeline.records != nullptr) return absl::OkStatus();
  if (pipeline.groups != nullptr) {
    fed.groups = std::make_unique<StoredGroups>(*pipeline.groups, stage_->result_budget());
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(fed.rows_plan, RowsPlan::Make(pipeline.absorbed.pipeline.schemas[0]));
  return absl::OkStatus();
}

absl::Status LocalStage::Start(Fed& fed) {
  if (fed.groups != nullptr || fed.started) return absl::OkStatus();
  fed.started = true;
  for (const uint32_t before : stage_->plan().pipelines[fed.number].after)
    NAM_RETURN_IF_ERROR(Complete(before));
  PreparedPipeline& pipeline = stage_->pipeline(fed.number);
  std::unique_ptr<SourceTask> source;
  if (pipeline.records != nullptr) {
    auto records = std::make_unique<RecordFeed>(*pipeline.records, stage_->result_budget());
    fed.records = records.get();
    source = std::move(records);
  } else {
    auto rows = std::make_unique<StoredRows>(fed.rows_plan->layout());
    fed.rows = rows.get();
    source = std::move(rows);
  }
  fed.task = NewTask(pipeline, std::move(source));
  return absl::OkStatus();
}

absl::Status LocalStage::End(Fed& fed) {
  if (fed.groups != nullptr) {
    rows_[fed.number] = {fed.groups->groups()};
    return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(Start(fed));
  if (!fed.done) {
    if (fed.rows != nullptr) fed.rows->End();
    if (fed.records != nullptr) fed.records->Close();
    const Step step = fed.task->Run(context_);
    if (step == Step::kFailed) return context_.error();
    NAM_CHECK(step == Step::kDone, "rows have come to their end");
  }
  rows_[fed.number].assign(fed.task->rows().begin(), fed.task->rows().end());
  fed.task.reset();
  return absl::OkStatus();
}

absl::Status LocalStage::Add(uint32_t pipeline, std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(!finished_, "pages come before the end");
  const auto fed = fed_.find(pipeline);
  NAM_CHECK(fed != fed_.end(), "a pipeline that this stage reads");
  if (error_.ok()) error_ = stage_->Explained(fed->second->number, Feed(*fed->second, pages, attempt));
  return error_;
}

absl::Status LocalStage::Feed(Fed& fed, std::span<const std::byte> pages, uint64_t attempt) {
  if (context_.cancelled()) return QueryCancelled();
  const Held held(stage_->result_budget(), pages.size());
  if (held.bytes() < pages.size()) return OverBudget(stage_->result_budget());
  if (fed.groups != nullptr) {
    const absl::Status added = fed.groups->Add(context_, pages, attempt);
    context_.Settle();
    return added;
  }
  NAM_RETURN_IF_ERROR(Start(fed));
  if (fed.done) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(fed.rows->Feed(pages, attempt));
  return RunFed(fed);
}

absl::Status LocalStage::AddRuns(uint32_t pipeline, const proto::Directory& runs) {
  NAM_CHECK(!finished_, "runs come before the end");
  const auto fed = fed_.find(pipeline);
  NAM_CHECK(fed != fed_.end(), "a pipeline that this stage reads");
  if (error_.ok()) {
    error_ = runs.pipeline() != pipeline
                 ? absl::InternalError("a compute server reports another pipeline's runs")
                 : stage_->pipeline(fed->second->number).last_sink().AddRuns(runs);
  }
  return error_;
}

absl::Status LocalStage::CheckRoom(uint64_t bytes) const {
  const MemoryBudget& budget = stage_->result_budget();
  if (bytes <= budget.bytes() - budget.used()) return absl::OkStatus();
  return stage_->Explained(stage_->claimed(), OverBudget(budget));
}

absl::Status LocalStage::RunFed(Fed& fed) {
  const Step step = fed.task->Run(context_);
  fed.done = step == Step::kDone;
  return step == Step::kFailed ? context_.error() : absl::OkStatus();
}

absl::StatusOr<bool> LocalStage::AddRecords(uint32_t pipeline, std::span<const std::byte* const> rows) {
  NAM_CHECK(!finished_, "rows come before the end");
  const auto found = fed_.find(pipeline);
  NAM_CHECK(found != fed_.end() && stage_->pipeline(pipeline).records != nullptr, "a scan of records");
  Fed& fed = *found->second;
  if (error_.ok()) error_ = stage_->Explained(fed.number, Start(fed));
  if (error_.ok() && !fed.done && !rows.empty()) {
    fed.records->Give(rows);
    error_ = stage_->Explained(fed.number, RunFed(fed));
  }
  NAM_RETURN_IF_ERROR(error_);
  return !fed.done;
}

absl::Status LocalStage::Run() {
  NAM_CHECK(!std::exchange(finished_, true), "a query ends once");
  for (const uint32_t number : stage_->numbers()) {
    if (error_.ok()) error_ = Complete(number);
  }
  return error_;
}

absl::Status LocalStage::Complete(uint32_t number) {
  const bool here = stage_->plan().pipelines[number].stage == stage_->inputs().stage;
  if (!here || complete_[number]) return absl::OkStatus();
  const std::vector<uint32_t>& after = stage_->plan().pipelines[number].after;
  for (const uint32_t before : after) NAM_RETURN_IF_ERROR(Complete(before));
  NAM_RETURN_IF_ERROR(stage_->Explained(number, Run(number)));
  complete_[number] = true;
  // Memory goes back as soon as its contents have been read for the last time.
  for (const uint32_t before : after) stage_->ReleaseIfRead(before, complete_);
  return absl::OkStatus();
}

absl::Status LocalStage::Run(uint32_t number) {
  if (context_.cancelled()) return QueryCancelled();
  PreparedPipeline& pipeline = stage_->pipeline(number);
  if (pipeline.source == nullptr) {
    NAM_RETURN_IF_ERROR(End(*fed_.at(KeyOf(number))));
  } else {
    const std::unique_ptr<PipelineTask> task = NewTask(pipeline, pipeline.source->NewTask(context_));
    const Step step = task->Run(context_);
    if (step == Step::kFailed) return context_.error();
    NAM_CHECK(step == Step::kDone, "nothing here waits");
    rows_[number].assign(task->rows().begin(), task->rows().end());
  }
  if (pipeline.feeds != nullptr) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Combine(*pipeline.sink));
  counters_[number] = pipeline.Counters();
  return absl::OkStatus();
}

void LocalStage::OnProgress(std::function<void(uint64_t rows)> report) {
  progress_.OnProgress(std::move(report));
  for (const uint32_t number : stage_->numbers()) progress_.Watch(stage_->pipeline(number));
}

std::unique_ptr<PipelineTask> LocalStage::NewTask(PreparedPipeline& pipeline,
                                                  std::unique_ptr<SourceTask> source) {
  return pipeline.NewTask(context_, progress_.Watched(std::move(source)));
}

absl::Status LocalStage::Combine(Sink& sink) {
  const uint32_t parts = sink.CombineParts();
  for (uint32_t part = 0; part < parts; ++part) {
    if (context_.cancelled()) return QueryCancelled();
    NAM_RETURN_IF_ERROR(sink.Combine(context_, part));
    progress_.Add(0);
  }
  context_.Settle();
  return absl::OkStatus();
}

}  // namespace nam::execution
