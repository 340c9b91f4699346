// Stages that claim parts, run as compute servers run them: their plans, attempts and directories.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "execution/attempt.h"
#include "execution/partition/partition_sink.h"
#include "plan/check.h"
#include "plan/flow.h"
#include "tests/execution/aggregate/aggregation.h"
#include "tests/execution/partition/scratch_cluster.h"

namespace nam::execution {
namespace {

constexpr uint32_t kRowParts = 8, kGroupParts = 4;

plan::Pipeline StagePipeline(plan::SourceNode source, plan::Schema rows, plan::SinkNode sink,
                             uint32_t stage) {
  plan::Pipeline pipeline{.source = std::move(source),
                          .steps = {},
                          .sink = std::move(sink),
                          .schemas = {std::move(rows)},
                          .estimates = {{0, 1}},
                          .after = {},
                          .stage = stage};
  if (stage > 0) pipeline.after = {stage - 1};
  return pipeline;
}

/// Rows by their first slot; groups of them by both; the groups as they are.
///
///     P0 … ─▶ rows by parts    P1 rows of a part ─▶ states by parts    P2 groups of a part ─▶ result
plan::PhysicalPlan ThreeStages(const Aggregation& aggregation) {
  plan::PhysicalPlan plan;
  plan::AggregateSink partial{
      .group_by = aggregation.keys, .aggregates = aggregation.aggregates, .totals = {}, .parts = kGroupParts};
  plan.pipelines.push_back(
      StagePipeline(plan::ValuesSource{}, aggregation.schema, plan::PartitionSink{{0}, kRowParts}, 0));
  plan.pipelines.push_back(StagePipeline(plan::PartitionSource{0, {}}, aggregation.schema, partial, 1));
  plan::AggregateSink merge = partial;
  merge.phase = plan::AggregateSink::Phase::kFinal;
  merge.parts = 0;
  const plan::Schema states = *plan::SinkOutput(plan.pipelines[1]);
  for (uint32_t k = 0; k < merge.group_by.size(); ++k) merge.group_by[k] = SlotExpr(states, k);
  for (plan::Aggregate& aggregate : merge.aggregates) {
    plan::Expr null;
    null.type = aggregate.argument.type;
    null.literal = Value::Null(null.type);
    if (plan::ArgumentsOf(aggregate.function) > 0) aggregate.argument = null;
  }
  const plan::PartitionSource groups{1, merge};
  plan.pipelines.push_back(
      StagePipeline(groups, *plan::PartitionOutput(plan, groups), plan::ResultSink{}, 2));
  for (uint32_t s = 0; s < 3; ++s) plan.stages.push_back({.claimed = s, .result = {}});
  return plan;
}

class PartStageTest : public ::testing::Test {
 protected:
  PartStageTest()
      : driver_(3),
        cluster_(driver_),
        channels_(cluster_.fabric(), cluster_.servers(), {.buffer_bytes = 1 << 20}) {
    aggregation_.schema = {{Type::Integer(), false, {0, 1'000'000, true}},
                           {Type::Integer(), true, {-3, 3, true}}};
    aggregation_.keys = {SlotExpr(aggregation_.schema, 0), SlotExpr(aggregation_.schema, 1)};
    aggregation_.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, aggregation_.schema, 1),
                               MakeAggregate(plan::AggregateFunction::kCountRows, aggregation_.schema, 0)};
    plan_ = ThreeStages(aggregation_);
    EXPECT_TRUE(plan::Check(plan_).ok()) << plan::Check(plan_);
  }

  StageInputs Inputs(uint32_t stage, uint32_t parts, uint64_t attempt) {
    StageInputs inputs;
    inputs.plan = plan_;
    inputs.stage = stage;
    inputs.settings.set_result_bytes_max(64 << 20);
    inputs.settings.set_build_bytes_max(1 << 20);
    inputs.threads = 2;
    inputs.attempt = attempt;
    inputs.scratch = cluster_.NewSpace();
    for (uint32_t part = 0; part < parts; ++part) inputs.pieces.push_back({part, 0, 1});
    return inputs;
  }
  /// The output of stage 0 for this input.
  proto::Directory WriteRows(const std::vector<Tuple>& input, uint64_t attempt) {
    spaces_.push_back(cluster_.NewSpace());
    auto sink =
        *PartitionSink::Make({.rows = aggregation_.schema, .by = {{0}, kRowParts}, .attempt = attempt},
                             *spaces_.back(), driver_.budget());
    EXPECT_TRUE(cluster_.RunInto(aggregation_.schema, input, *sink, 2).ok());
    return sink->output().directory().ToProto(attempt, 0);
  }
  /// Runs an attempt; `use` looks at it before it ends.
  template <typename Use>
  void Run(StageInputs inputs, Use&& use) {
    absl::StatusOr<std::unique_ptr<PreparedStage>> stage = PreparedStage::Make(std::move(inputs), leaving_);
    ASSERT_TRUE(stage.ok()) << stage.status();
    std::atomic<bool> cancel = false;
    Attempt attempt(**stage, MulticastBuild(), channels_, channels_, cancel);
    attempt.Start();
    ASSERT_FALSE(attempt.Await([] {})) << "a window, where none is wanted";
    ASSERT_TRUE(attempt.status().ok()) << attempt.status();
    use(**stage, attempt);
  }
  std::vector<Tuple> SomeRows(size_t count) {
    std::vector<Tuple> rows;
    for (size_t i = 0; i < count; ++i)
      rows.push_back({Cell::Number(static_cast<int64_t>(i / 2)),
                      RandomCell(aggregation_.schema[1], 7, driver_.random())});
    return rows;
  }

  StepDriver driver_;
  ScratchCluster cluster_;
  ChannelPool channels_;
  const std::atomic<bool> leaving_ = false;
  std::vector<std::unique_ptr<storage::ScratchSpace>> spaces_;
  Aggregation aggregation_;
  plan::PhysicalPlan plan_;
};

TEST_F(PartStageTest, RowsThenGroupsOfManyGoFromStageToStage) {
  const std::vector<Tuple> input = SomeRows(80'000);
  StageInputs inputs = Inputs(1, kRowParts, 70);
  const auto middle = input.begin() + 30'000;
  inputs.directories = {WriteRows({input.begin(), middle}, 60), WriteRows({middle, input.end()}, 61)};
  proto::Directory groups;
  Run(std::move(inputs), [&](PreparedStage&, Attempt& attempt) {
    std::vector<std::span<const std::byte>> pages;
    ASSERT_TRUE(attempt.Store(70, pages).ok());
    EXPECT_TRUE(pages.empty()) << "all groups are by parts";
    proto::AttemptReply reply;
    attempt.Report(reply);
    groups = reply.directory();
    EXPECT_EQ(groups.attempt(), 70u);
    EXPECT_EQ(groups.pipeline(), 1u);
    const proto::PipelineCounters& counters = reply.pipelines(0);
    EXPECT_EQ(counters.rows_in(), input.size());
    EXPECT_GT(counters.scratch_bytes_read(), 0u);
    EXPECT_GT(counters.scratch_pages_read(), 0u);
    EXPECT_GT(counters.scratch_bytes_written(), 0u);
    size_t pages_written = 0;
    for (const proto::PartPages& part : groups.parts())
      pages_written += static_cast<size_t>(part.pages_size());
    EXPECT_EQ(counters.scratch_pages_written(), pages_written);
    std::vector<uint32_t> claimed;
    for (const proto::ThreadClaims& of : reply.threads())
      claimed.insert(claimed.end(), of.pieces().begin(), of.pieces().end());
    std::sort(claimed.begin(), claimed.end());
    EXPECT_EQ(claimed, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  });
  StageInputs last = Inputs(2, kGroupParts, 71);
  last.directories = {groups};
  Run(std::move(last), [&](PreparedStage& stage, Attempt& attempt) {
    proto::AttemptReply reply;
    attempt.Report(reply);
    EXPECT_FALSE(reply.has_directory());
    const std::unique_ptr<Source> rows = stage.pipeline(2).sink->RowsAtRest(false);
    const auto merged = cluster_.ReadAll(*rows, 4, 1);
    ASSERT_TRUE(merged.ok()) << merged.status();
    ExpectTuples(*merged, Model(aggregation_, input));
  });
}

TEST_F(PartStageTest, FewGroupsAreTheResult) {
  StageInputs inputs = Inputs(1, kRowParts, 70);
  inputs.directories = {WriteRows(SomeRows(3'000), 60)};
  Run(std::move(inputs), [&](PreparedStage&, Attempt& attempt) {
    std::vector<std::span<const std::byte>> pages;
    ASSERT_TRUE(attempt.Store(70, pages).ok());
    EXPECT_FALSE(pages.empty());
    proto::AttemptReply reply;
    attempt.Report(reply);
    EXPECT_FALSE(reply.has_directory());
    EXPECT_EQ(reply.pipelines(0).scratch_bytes_written(), 0u);
  });
}

TEST_F(PartStageTest, APlanThatWritesByPartsNeedsScratchMemory) {
  StageInputs inputs = Inputs(1, kRowParts, 70);
  inputs.scratch = nullptr;
  EXPECT_EQ(PreparedStage::Make(std::move(inputs), leaving_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PartStageTest, DirectoriesOfPipelinesThatItDoesNotReadAreDamaged) {
  StageInputs inputs = Inputs(1, kRowParts, 70);
  inputs.directories = {WriteRows(SomeRows(3'000), 60), WriteRows(SomeRows(2'000), 61)};
  inputs.directories[1].set_pipeline(2);
  const absl::Status status = PreparedStage::Make(std::move(inputs), leaving_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

}  // namespace
}  // namespace nam::execution
