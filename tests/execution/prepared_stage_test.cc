#include "execution/prepared_stage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "plan/check.h"
#include "plan/flow.h"

/// Plans that are valid but that a compute server cannot run. They come from other processes.
namespace nam::execution {
namespace {

plan::Pipeline Values(uint32_t stage) {
  return {.source = plan::ValuesSource{},
          .steps = {},
          .sink = plan::ResultSink{},
          .schemas = {{{Type::Integer(), true, {}}}},
          .estimates = {{0, 1}},
          .after = {},
          .stage = stage};
}

plan::Pipeline RowsOf(const plan::Pipeline& from, uint32_t number, uint32_t stage) {
  plan::Pipeline pipeline = Values(stage);
  pipeline.source = plan::PageSource{.pipeline = number};
  pipeline.schemas = {*plan::SinkOutput(from)};
  pipeline.after = {number};
  return pipeline;
}

absl::Status MadeBy(plan::PhysicalPlan plan, uint32_t stage) {
  const absl::Status checked = plan::Check(plan);
  EXPECT_TRUE(checked.ok()) << checked;
  static const std::atomic<bool> leaving = false;
  StageInputs inputs;
  inputs.plan = std::move(plan);
  inputs.stage = stage;
  inputs.settings.set_result_bytes_max(1 << 20);
  inputs.settings.set_build_bytes_max(1 << 20);
  return PreparedStage::Make(std::move(inputs), leaving).status();
}

TEST(PreparedStage, ServersDoNotReadWhatOtherStagesLeft) {
  plan::PhysicalPlan plan;
  plan.pipelines.push_back(Values(0));
  plan.pipelines.push_back(RowsOf(plan.pipelines[0], 0, 1));
  plan.pipelines.push_back(RowsOf(plan.pipelines[1], 1, 1));
  plan.stages = {{.claimed = 0, .result = {}}, {.claimed = 2, .result = {}}};
  const absl::Status refused = MadeBy(plan, 1);
  EXPECT_TRUE(absl::IsUnimplemented(refused));
  EXPECT_TRUE(absl::StrContains(refused.message(), "other stages")) << refused;
  EXPECT_TRUE(absl::IsInvalidArgument(MadeBy(plan, 2)));
}

TEST(PreparedStage, ServersClaimPiecesOfTables) {
  plan::PhysicalPlan plan;
  plan.pipelines.push_back(Values(0));
  plan.stages = {{.claimed = 0, .result = {}}};
  const absl::Status refused = MadeBy(plan, 0);
  EXPECT_TRUE(absl::IsUnimplemented(refused));
  EXPECT_TRUE(absl::StrContains(refused.message(), "claims no table")) << refused;
}

}  // namespace
}  // namespace nam::execution
