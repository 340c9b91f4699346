#include "session/stage_output.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "session/query_result.h"

namespace nam::session {
namespace {

/// Large enough to hide its call, small enough that clients and servers hold some.
constexpr uint64_t kWindowBytes = 8 << 20;
/// A server holds two windows and its threads' open pages, the session one: all within the budget of each.
constexpr uint64_t kWindowsOfBudget = 8;

}  // namespace

StageOutput OutputTo(execution::LocalStage& stage, const plan::PhysicalPlan& plan, uint32_t pipeline,
                     uint64_t budget_bytes, std::function<void()> use_scratch) {
  StageOutput output;
  output.add = [&stage, pipeline](const std::string& pages, uint64_t attempt) -> absl::StatusOr<bool> {
    NAM_RETURN_IF_ERROR(stage.Add(pipeline, std::as_bytes(std::span(pages)), attempt));
    return stage.Wants(pipeline);
  };
  output.room = [&stage](uint64_t bytes) { return stage.CheckRoom(bytes); };
  if (use_scratch) {
    output.parts = [&stage, pipeline, use = std::move(use_scratch)](const proto::Directory& runs) {
      use();
      return stage.AddRuns(pipeline, runs);
    };
  }
  if (FlowsToClient(plan, pipeline))
    output.window_bytes = std::min<uint64_t>(kWindowBytes, budget_bytes / kWindowsOfBudget);
  return output;
}

}  // namespace nam::session
