#include "execution/prepared_stage.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/pipeline_preparation.h"

namespace nam::execution {

Sink& PreparedPipeline::sink() const {
  if (direct_build != nullptr) return *direct_build;
  if (row_build != nullptr) return *row_build;
  if (aggregate != nullptr) return *aggregate;
  if (result != nullptr) return *result;
  if (top_rows != nullptr) return *top_rows;
  return *sorter;
}

const BuildSide* PreparedPipeline::build() const {
  if (direct_build != nullptr) return direct_build.get();
  return row_build.get();
}

PreparedStage::PreparedStage(StageInputs inputs, const std::atomic<bool>& leaving)
    : inputs_(std::move(inputs)),
      leaving_(leaving),
      claimed_(inputs_.plan.stages[0].claimed),
      build_budget_(inputs_.settings.build_bytes_max()),
      result_budget_(inputs_.settings.result_bytes_max()) {}

absl::StatusOr<std::unique_ptr<PreparedStage>> PreparedStage::Make(StageInputs inputs,
                                                                   const std::atomic<bool>& leaving) {
  if (inputs.plan.stages.size() != 1)
    return absl::UnimplementedError("a compute server runs the stages of a plan one at a time");
  NAM_CHECK(inputs.tables.size() == inputs.plan.tables.size() &&
            inputs.known.size() == inputs.plan.tables.size());
  std::unique_ptr<PreparedStage> stage(new PreparedStage(std::move(inputs), leaving));
  for (uint32_t p = 0; p < stage->plan().pipelines.size(); ++p) {
    stage->pipelines_.emplace_back();
    NAM_RETURN_IF_ERROR(stage->Explained(p, PipelinePreparation(*stage, p).Run()));
  }
  return stage;
}

absl::Status PreparedStage::Explained(size_t pipeline, const absl::Status& status) const {
  if (!absl::IsResourceExhausted(status)) return status;
  if (pipeline == claimed_) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the result is larger than %d MiB on one server: add a LIMIT or a filter, or raise nam.result_mib_max",
        result_budget_.bytes() >> 20));
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the build sides of the query's joins need more than %d MiB on one server: raise nam.build_mib_max",
      build_budget_.bytes() >> 20));
}

}  // namespace nam::execution
