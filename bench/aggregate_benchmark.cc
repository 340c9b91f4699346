// The cost of a chunk to an aggregation, and of combining threads' groups.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "execution/aggregate/aggregate_sink.h"

namespace nam {
namespace {

constexpr uint32_t kRows = 1 << 21;

plan::Expr ColumnExpr(int column) {
  plan::Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = Type::Integer();
  expr.column = {0, column};
  return expr;
}

std::vector<plan::Expr> Keys() {
  return {ColumnExpr(0), ColumnExpr(1)};
}
std::vector<plan::Aggregate> Sums() {
  return {{.function = plan::AggregateFunction::kSum, .argument = ColumnExpr(2), .type = Type::Integer()}};
}

/// Two code keys that make the given number of groups, and a number to sum: from a join's payload and a
/// block.
class Input {
 public:
  explicit Input(int64_t groups) : high_(groups <= 7 ? 1 : groups <= 280 ? 40 : groups <= 4096 ? 64 : 1000) {
    const int64_t low = groups / high_;
    RandomStream random(1);
    for (uint32_t i = 0; i < kRows; ++i) {
      first_.push_back(static_cast<uint16_t>(random.Below(static_cast<uint64_t>(low))));
      second_.push_back(static_cast<uint16_t>(random.Below(static_cast<uint64_t>(high_))));
      values_.push_back(static_cast<uint32_t>(random.Below(1 << 24)));
    }
    most_ = {low - 1, high_ - 1, (1 << 24) - 1};
  }
  const std::byte* codes(int column) const {
    return reinterpret_cast<const std::byte*>(column == 0   ? static_cast<const void*>(first_.data())
                                              : column == 1 ? static_cast<const void*>(second_.data())
                                                            : static_cast<const void*>(values_.data()));
  }
  uint8_t width(int column) const { return column == 2 ? 4 : 2; }
  int64_t most(int column) const { return most_[static_cast<size_t>(column)]; }
  /// Row numbers of the next chunk: the rest of a block.
  void Next(uint32_t count, uint32_t* rows) {
    constexpr uint32_t kBlockRows = 1700;
    if (at_ + kBlockRows > kRows) at_ = 0;
    const uint32_t step = kBlockRows / count;
    for (uint32_t i = 0; i < count; ++i) rows[i] = at_ + i * step;
    at_ += step * count;
  }

 private:
  const int64_t high_;
  std::vector<uint16_t> first_, second_;
  std::vector<uint32_t> values_;
  std::vector<int64_t> most_;
  uint32_t at_ = 0;
};

class Aggregation {
 public:
  explicit Aggregation(const Input& input) : chunk_(3, 1) {
    execution::AggregatePlan::Options options;
    const std::vector<plan::Expr> keys = Keys();
    const std::vector<plan::Aggregate> sums = Sums();
    options.group_by = keys;
    options.aggregates = sums;
    for (int c = 0; c < 3; ++c) {
      options.schema.push_back(
          {.type = Type::Integer(), .nullable = false, .bounds = {0, input.most(c), true}});
      meanings_[c] = {.type = Type::Integer(),
                      .width = input.width(c),
                      .codes = static_cast<uint64_t>(input.most(c)) + 1,
                      .max = input.most(c)};
      chunk_.columns()[static_cast<size_t>(c)] = {.kind = execution::Column::Kind::kCodes,
                                                  .width = input.width(c),
                                                  .base = input.codes(c),
                                                  .rows = chunk_.row_set(0),
                                                  .meaning = &meanings_[c]};
    }
    plan_ = execution::AggregatePlan::Make(options).value();
    sink_ = std::make_unique<execution::AggregateSink>(*plan_, budget_);
  }
  void NewTask() { task_ = sink_->NewTask(context_); }
  void Consume(Input& input, uint32_t count) {
    input.Next(count, chunk_.row_set(0));
    chunk_.SelectAll(count);
    NAM_CHECK(task_->Consume(context_, chunk_) == execution::Step::kNeedInput);
  }
  void FinishTask() { NAM_CHECK(task_->Finish(context_) == execution::Step::kDone); }
  void Combine() {
    const uint32_t parts = sink_->CombineParts();
    for (uint32_t part = 0; part < parts; ++part) NAM_CHECK(sink_->Combine(context_, part).ok());
  }

 private:
  execution::MemoryBudget budget_{uint64_t{4} << 30};
  std::atomic<bool> cancel_ = false;
  execution::TaskContext context_{RealClock(), budget_, cancel_};
  execution::CodeMeaning meanings_[3];
  execution::Chunk chunk_;
  std::unique_ptr<const execution::AggregatePlan> plan_;
  std::unique_ptr<execution::AggregateSink> sink_;
  std::unique_ptr<execution::SinkTask> task_;
};

/// Arguments: groups, rows of a chunk.
void ConsumeChunks(benchmark::State& state) {
  Input input(state.range(0));
  const auto rows = static_cast<uint32_t>(state.range(1));
  Aggregation aggregation(input);
  aggregation.NewTask();
  for (uint32_t done = 0; done < kRows; done += 1024) aggregation.Consume(input, 1024);  // all groups
  for (auto _ : state) aggregation.Consume(input, rows);
  state.SetItemsProcessed(state.iterations() * rows);
}

/// Argument: groups. Combines two threads' groups on one thread.
void CombineGroups(benchmark::State& state) {
  Input input(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto aggregation = std::make_unique<Aggregation>(input);
    for (int task = 0; task < 2; ++task) {
      aggregation->NewTask();
      const uint32_t rows = state.range(0) > 4096 ? kRows : 1 << 16;
      for (uint32_t done = 0; done < rows; done += 1024) aggregation->Consume(input, 1024);
      aggregation->FinishTask();
    }
    state.ResumeTiming();
    aggregation->Combine();
    state.PauseTiming();
    aggregation.reset();
    state.ResumeTiming();
  }
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t groups : {7, 280, 4096, 1'000'000}) {
    for (const int64_t rows : {13, 1024}) benchmark->Args({groups, rows});
  }
}
BENCHMARK(ConsumeChunks)->Apply(Arguments);
BENCHMARK(CombineGroups)->Arg(7)->Arg(280)->Arg(4096)->Arg(1'000'000)->Iterations(5);

}  // namespace
}  // namespace nam
