#include "execution/local_stage.h"

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

constexpr std::atomic<bool> kNotLeaving = false;

absl::Status Cancelled() {
  return absl::CancelledError("the query was cancelled");
}

}  // namespace

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
    : stage_(std::move(stage)), context_(clock, stage_->result_budget(), cancel) {}

LocalStage::~LocalStage() = default;

absl::Status LocalStage::PrepareFed(uint32_t number) {
  PreparedPipeline& pipeline = stage_->pipeline(number);
  if (pipeline.records.has_value()) {
    Fed& fed = fed_[number];
    fed.number = number;
    auto records = std::make_unique<RecordFeed>(*pipeline.records, stage_->result_budget());
    fed.records = records.get();
    fed.task = pipeline.NewTask(context_, std::move(records));
    return absl::OkStatus();
  }
  Fed& fed = fed_[pipeline.foreign->pipeline];
  if (fed.groups != nullptr || fed.task != nullptr)
    return absl::UnimplementedError("rows of another stage that two pipelines read");
  fed.number = number;
  if (pipeline.aggregate_plan != nullptr && pipeline.aggregate_plan->input() == AggregateInput::kGroups) {
    fed.groups = std::make_unique<StoredGroups>(*pipeline.aggregate, stage_->result_budget());
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(fed.rows_plan, RowsPlan::Make(pipeline.absorbed.pipeline.schemas[0]));
  auto rows = std::make_unique<StoredRows>(fed.rows_plan->layout());
  fed.rows = rows.get();
  fed.task = pipeline.NewTask(context_, std::move(rows));
  return absl::OkStatus();
}

absl::Status LocalStage::Add(uint32_t pipeline, std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(!finished_, "pages come before the end");
  const auto fed = fed_.find(pipeline);
  NAM_CHECK(fed != fed_.end(), "a pipeline that this stage reads");
  if (error_.ok()) error_ = stage_->Explained(fed->second.number, Feed(fed->second, pages, attempt));
  return error_;
}

absl::Status LocalStage::Feed(Fed& fed, std::span<const std::byte> pages, uint64_t attempt) {
  if (context_.cancelled()) return Cancelled();
  if (fed.groups != nullptr) {
    const absl::Status added = fed.groups->Add(context_, pages, attempt);
    context_.Settle();
    return added;
  }
  if (fed.done) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(fed.rows->Feed(pages, attempt));
  return RunFed(fed);
}

absl::Status LocalStage::RunFed(Fed& fed) {
  const Step step = fed.task->Run(context_);
  fed.done = step == Step::kDone;
  return step == Step::kFailed ? context_.error() : absl::OkStatus();
}

absl::StatusOr<bool> LocalStage::AddRecords(uint32_t pipeline, std::span<const std::byte* const> rows) {
  NAM_CHECK(!finished_, "rows come before the end");
  const auto found = fed_.find(pipeline);
  NAM_CHECK(found != fed_.end() && found->second.records != nullptr, "a scan of records");
  Fed& fed = found->second;
  if (error_.ok() && !fed.done && !rows.empty()) {
    fed.records->Give(rows);
    error_ = stage_->Explained(fed.number, RunFed(fed));
  }
  NAM_RETURN_IF_ERROR(error_);
  return !fed.done;
}

absl::Status LocalStage::Run() {
  NAM_CHECK(!std::exchange(finished_, true), "a query ends once");
  if (error_.ok()) error_ = RunAll();
  return error_;
}

absl::Status LocalStage::RunAll() {
  for (auto& [from, fed] : fed_) {
    if (fed.task == nullptr) continue;
    if (!fed.done) {
      if (fed.rows != nullptr) fed.rows->End();
      if (fed.records != nullptr) fed.records->Close();
      const Step step = fed.task->Run(context_);
      if (step == Step::kFailed) return stage_->Explained(fed.number, context_.error());
      NAM_CHECK(step == Step::kDone, "rows have come to their end");
    }
    fed.task.reset();
  }
  for (const uint32_t number : stage_->numbers()) {
    NAM_RETURN_IF_ERROR(stage_->Explained(number, RunPipeline(number)));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::RunPipeline(uint32_t number) {
  if (context_.cancelled()) return Cancelled();
  PreparedPipeline& pipeline = stage_->pipeline(number);
  if (pipeline.source != nullptr) {
    const std::unique_ptr<PipelineTask> task = pipeline.NewTask(context_, pipeline.source->NewTask(context_));
    const Step step = task->Run(context_);
    if (step == Step::kFailed) return context_.error();
    NAM_CHECK(step == Step::kDone, "nothing here waits");
  }
  NAM_RETURN_IF_ERROR(Combine(pipeline.sink()));
  // Memory goes back as soon as what it held has been read for the last time.
  stage_->ReleaseBefore(number);
  return absl::OkStatus();
}

absl::Status LocalStage::Combine(Sink& sink) {
  const uint32_t parts = sink.CombineParts();
  for (uint32_t part = 0; part < parts; ++part) {
    if (context_.cancelled()) return Cancelled();
    NAM_RETURN_IF_ERROR(sink.Combine(context_, part));
  }
  context_.Settle();
  return absl::OkStatus();
}

}  // namespace nam::execution
