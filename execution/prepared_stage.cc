#include "execution/prepared_stage.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/methods.h"
#include "execution/pipeline_preparation.h"
#include "types/sql_error.h"

namespace nam::execution {

std::unique_ptr<PipelineTask> PreparedPipeline::NewTask(TaskContext& context,
                                                        std::unique_ptr<SourceTask> from) const {
  std::vector<std::unique_ptr<StepTask>> tasks;
  std::vector<std::unique_ptr<Chunk>> chunks;
  const size_t columns = absorbed.pipeline.schemas[0].size();
  chunks.push_back(source != nullptr ? source->NewChunk(columns) : std::make_unique<Chunk>(columns, 0));
  for (const StepAndChunk& step : steps) {
    tasks.push_back(step.step->NewTask(context));
    chunks.push_back(step.new_chunk());
  }
  return std::make_unique<PipelineTask>(std::move(from), std::move(tasks), last_sink().NewTask(context),
                                        std::move(chunks));
}

proto::PipelineCounters PreparedPipeline::Counters() const {
  proto::PipelineCounters out;
  out.set_by_row_nodes(by_row_nodes);
  if (source != nullptr) source->Count(out);
  if (sink != nullptr) sink->Count(out);
  return out;
}

uint64_t ResultBytesMax(const proto::StreamSettings& settings, int threads) {
  constexpr uint64_t kLeastOfThread = uint64_t{256} << 10;
  return std::max(settings.result_bytes_max(), kLeastOfThread * static_cast<uint64_t>(std::max(threads, 1)));
}

PreparedStage::PreparedStage(StageInputs inputs, const std::atomic<bool>& leaving)
    : inputs_(std::move(inputs)),
      leaving_(leaving),
      claimed_(inputs_.plan.stages[inputs_.stage].claimed),
      of_session_(inputs_.plan.stages[inputs_.stage].site == plan::Stage::Site::kSession),
      build_budget_(inputs_.settings.build_bytes_max(), inputs_.memory.get()),
      result_budget_(of_session_ ? inputs_.settings.result_bytes_max()
                                 : ResultBytesMax(inputs_.settings, inputs_.threads),
                     inputs_.memory.get()),
      memos_(result_budget_) {}

absl::StatusOr<std::unique_ptr<PreparedStage>> PreparedStage::Make(StageInputs inputs,
                                                                   const std::atomic<bool>& leaving) {
  if (inputs.stage >= inputs.plan.stages.size())
    return absl::InvalidArgumentError("a stage that the plan does not have");
  std::unique_ptr<PreparedStage> stage(new PreparedStage(std::move(inputs), leaving));
  stage->pipelines_.resize(stage->plan().pipelines.size());
  for (uint32_t p = 0; p < stage->plan().pipelines.size(); ++p) {
    if (stage->plan().pipelines[p].stage != stage->inputs().stage) continue;
    stage->numbers_.push_back(p);
    NAM_RETURN_IF_ERROR(stage->Explained(p, PipelinePreparation(*stage, p).Run()));
  }
  NAM_RETURN_IF_ERROR(stage->CheckDirectories());
  return stage;
}

/// Sources ignore directories of other pipelines: rows of one that no source reads would be missing.
absl::Status PreparedStage::CheckDirectories() const {
  std::set<uint32_t> read;
  for (const uint32_t number : numbers_) {
    const plan::SourceNode& source = plan().pipelines[number].source;
    if (const auto* parts = std::get_if<plan::PartitionSource>(&source)) read.insert(parts->pipeline);
    if (const auto* join = std::get_if<plan::JoinSource>(&source))
      read.insert({join->probed, join->probe.build});
  }
  for (const proto::Directory& directory : inputs_.directories) {
    if (!read.contains(directory.pipeline()))
      return absl::DataLossError("a directory of scratch memory is of no pipeline that the stage reads");
  }
  return absl::OkStatus();
}

void PreparedStage::ReleaseIfRead(uint32_t number, const std::vector<bool>& complete) {
  for (const uint32_t later : numbers_) {
    const std::vector<uint32_t>& after = plan().pipelines[later].after;
    if (!complete[later] && std::binary_search(after.begin(), after.end(), number)) return;
  }
  pipelines_[number].sink.reset();
}

absl::Status PreparedStage::Explained(size_t pipeline, const absl::Status& status) const {
  if (!absl::IsResourceExhausted(status) || IsProcessLimit(status) || SqlErrorOf(status).has_value())
    return status;
  if (of_session_) {
    return UserError(sqlstate::kOutOfMemory,
                     absl::StrCat("the result needs more than the ", result_budget_.bytes() >> 20,
                                  " MiB that its session may hold"),
                     -1, "add a LIMIT or a filter, or raise nam.result_mib_max");
  }
  if (pipeline == claimed_) {
    return UserError(
        sqlstate::kOutOfMemory,
        absl::StrFormat("the result is larger than %d MiB on one server", result_budget_.bytes() >> 20), -1,
        "add a LIMIT or a filter, or raise nam.result_mib_max");
  }
  absl::Status too_large =
      UserError(sqlstate::kOutOfMemory,
                absl::StrFormat("the build sides of the query's joins need more than %d MiB on one server",
                                build_budget_.bytes() >> 20),
                -1, "raise nam.build_mib_max, or SET nam.join = 'rrj'");
  too_large.SetPayload(kBuildSidesTooLarge, absl::Cord());
  return too_large;
}

}  // namespace nam::execution
