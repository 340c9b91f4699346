// The cost of grouping by parts where every row is a group, and of merging the parts. Arguments: parts.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "execution/partition/parted_groups.h"
#include "execution/partition/partition_source.h"
#include "tests/execution/aggregate/aggregation.h"
#include "tests/execution/partition/scratch_cluster.h"

namespace nam::execution {
namespace {

constexpr uint32_t kRows = 1'000'000;

/// The rows are those of `select lo_orderkey, lo_linenumber, sum(lo_revenue) … group by 1, 2`.
class LineOrder {
 public:
  explicit LineOrder(uint32_t parts) : parts_(parts), chunk_(3, 0) {
    aggregation_.schema = {{Type::Integer(), false, {1, kRows, true}},
                           {Type::Integer(), false, {1, 7, true}},
                           {Type::Integer(), false, {0, 1 << 24, true}}};
    aggregation_.keys = {SlotExpr(aggregation_.schema, 0), SlotExpr(aggregation_.schema, 1)};
    aggregation_.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, aggregation_.schema, 2)};
    for (uint32_t i = 0; i < kRows; ++i) {
      orders_.push_back(i / 4);
      lines_.push_back(static_cast<uint8_t>(i % 4));
      revenues_.push_back(i * 7 % (1 << 24));
    }
    meanings_[0] = {.type = Type::Integer(), .width = 4, .base = 1, .codes = kRows, .min = 1, .max = kRows};
    meanings_[1] = {.type = Type::Integer(), .width = 1, .base = 1, .codes = 7, .min = 1, .max = 7};
    meanings_[2] = {.type = Type::Integer(), .width = 4, .codes = (1 << 24) + 1, .max = 1 << 24};
    sink_plan_ = Plan(AggregateInput::kRows);
    merge_plan_ = Plan(AggregateInput::kGroups);
  }

  void Group(ScratchCluster& cluster, MemoryBudget& budget) {
    const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
    const std::unique_ptr<TaskContext> context = cluster.NewContext();
    PartedGroups sink(*sink_plan_, {.parts = parts_, .attempt = 1}, *space, budget);
    const std::unique_ptr<SinkTask> task = sink.NewTask(*context);
    for (uint32_t first = 0; first < kRows; first += kChunkRows) {
      Fill(first, std::min(kChunkRows, kRows - first));
      NAM_CHECK(task->Consume(*context, chunk_) == Step::kNeedInput);
    }
    NAM_CHECK(task->Finish(*context) == Step::kDone && sink.CombineParts() == 0 && sink.parted());
    directory_ = sink.output().directory().ToProto(1, 0);
  }

  void Merge(ScratchCluster& cluster, MemoryBudget& budget) {
    std::vector<partitioner::Piece> pieces;
    for (uint32_t part = 0; part < parts_; ++part) pieces.push_back({part, 0, 1});
    PieceQueue queue(std::move(pieces));
    const auto source = PartitionSource::Make({.layout = merge_plan_->partial_layout(),
                                               .by = {{0, 1}, parts_},
                                               .directories = {&directory_, 1},
                                               .merge = merge_plan_.get()},
                                              queue, budget)
                            .value();
    const std::unique_ptr<TaskContext> context = cluster.NewContext();
    const std::unique_ptr<SourceTask> task = source->NewTask(*context);
    Chunk groups(3, 0);
    uint64_t rows = 0;
    while (task->Next(*context, groups) == Step::kHaveMore) rows += groups.selection().count;
    NAM_CHECK(context->error().ok() && rows == kRows);
  }

 private:
  std::unique_ptr<const AggregatePlan> Plan(AggregateInput input) const {
    return AggregatePlan::Make({.group_by = aggregation_.keys,
                                .aggregates = aggregation_.aggregates,
                                .schema = aggregation_.schema,
                                .meanings = {},
                                .input = input,
                                .parts = parts_})
        .value();
  }
  void Fill(uint32_t first, uint32_t count) {
    const void* const from[] = {orders_.data() + first, lines_.data() + first, revenues_.data() + first};
    for (size_t c = 0; c < 3; ++c) {
      chunk_.columns()[c] = {.kind = Column::Kind::kCodes,
                             .width = meanings_[c].width,
                             .base = static_cast<const std::byte*>(from[c]),
                             .meaning = &meanings_[c]};
    }
    chunk_.SelectAll(count);
  }

  const uint32_t parts_;
  Aggregation aggregation_;
  std::vector<uint32_t> orders_, revenues_;
  std::vector<uint8_t> lines_;
  CodeMeaning meanings_[3];
  Chunk chunk_;
  std::unique_ptr<const AggregatePlan> sink_plan_, merge_plan_;
  proto::Directory directory_;
};

void GroupByParts(benchmark::State& state) {
  LineOrder rows(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    StepDriver driver(1);
    auto cluster = std::make_unique<ScratchCluster>(driver);
    state.ResumeTiming();
    rows.Group(*cluster, driver.budget());
    state.PauseTiming();
    cluster.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(GroupByParts)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void MergeParts(benchmark::State& state) {
  LineOrder rows(static_cast<uint32_t>(state.range(0)));
  StepDriver driver(1);
  ScratchCluster cluster(driver);
  rows.Group(cluster, driver.budget());
  for (auto _ : state) rows.Merge(cluster, driver.budget());
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(MergeParts)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nam::execution
