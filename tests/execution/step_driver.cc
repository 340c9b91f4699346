#include "tests/execution/step_driver.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// Called when a check fails, which ends the process without gtest's traces.
volatile unsigned long long last_seed = 0;

/// Blocks on a gate that is open at the next look.
Step BlockForAMoment(TaskContext& context) {
  static const Gate& open = *[] {
    auto* gate = new Gate;  // never ends
    gate->Open();
    return gate;
  }();
  return context.BlockOn(open);
}

/// Output that a step must not leave.
void Poison(Chunk& out) {
  out.Reset(kChunkRows + 1, {nullptr, kChunkRows + 1});
  const auto* nowhere = reinterpret_cast<const std::byte*>(uintptr_t{0xdb});
  std::fill(out.columns().begin(), out.columns().end(), Column{.base = nowhere});
  for (size_t i = 0; i < out.row_sets(); ++i)
    std::memset(out.row_set(i), 0xdb, kChunkRows * sizeof(uint32_t));
}

void CheckChunk(const Chunk& chunk) {
  const Selection selection = chunk.selection();
  NAM_CHECK(chunk.size() <= kChunkRows, "the step says how many rows it put out");
  NAM_CHECK(selection.count <= chunk.size());
  for (uint32_t i = 0; i < selection.count; ++i) {
    NAM_CHECK(selection[i] < chunk.size());
    NAM_CHECK(i == 0 || selection[i] > selection[i - 1], "selections ascend");
  }
}

class CheckedStep final : public StepTask {
 public:
  explicit CheckedStep(std::unique_ptr<StepTask> step) : step_(std::move(step)) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    NAM_CHECK(!done_, "a step that is done is not called");
    const std::vector<Tuple> given = TuplesOf(in, in.columns().size());
    NAM_CHECK(!repeat_ || given == given_, "an input stays as it is until it is used up");
    Poison(out);
    const Step step = step_->Push(context, in, out);
    done_ = step == Step::kDone || step == Step::kFailed;
    repeat_ = step == Step::kHaveMore || step == Step::kBlocked;
    if (repeat_) given_ = given;
    if (step != Step::kBlocked && step != Step::kFailed) CheckChunk(out);
    return step;
  }
  Step Drain(TaskContext& context, Chunk& out) override {
    NAM_CHECK(!done_ && !repeat_, "a step is drained after its last input");
    Poison(out);
    const Step step = step_->Drain(context, out);
    done_ = step == Step::kDone || step == Step::kFailed;
    NAM_CHECK(step != Step::kNeedInput);
    if (step == Step::kDone || step == Step::kHaveMore) {
      CheckChunk(out);
      NAM_CHECK((out.selection().count > 0) == (step == Step::kHaveMore));
    }
    return step;
  }

 private:
  std::unique_ptr<StepTask> step_;
  std::vector<Tuple> given_;
  bool repeat_ = false;
  bool done_ = false;
};

}  // namespace

Step TupleSource::Next(TaskContext& context, Chunk& out) {
  NAM_CHECK(!stopped_ && !ended_, "a source that ended is not asked");
  if (random_.OneIn(4)) return BlockForAMoment(context);
  ended_ = done_ == tuples_.size();
  if (ended_) return Step::kDone;
  const uint64_t left = tuples_.size() - done_;
  const uint64_t most = std::min<uint64_t>(left, kChunkRows);
  const uint64_t count =
      random_.OneIn(2) ? most : std::min(left, static_cast<uint64_t>(random_.Magnitude(1, kChunkRows)));
  maker_.Fill({tuples_.data() + done_, count}, out);
  done_ += count;
  return Step::kHaveMore;
}

void TupleSource::Stop() {
  NAM_CHECK(!stopped_ && !ended_, "a source is stopped once");
  stopped_ = true;
}

Step TupleSink::Consume(TaskContext& context, const Chunk& in) {
  const std::vector<Tuple> given = TuplesOf(in, columns_);
  NAM_CHECK(taken_ <= given.size());
  while (taken_ < given.size() && tuples_.size() < most_) {
    if (random_.OneIn(200)) return BlockForAMoment(context);
    tuples_.push_back(given[taken_++]);
  }
  if (random_.OneIn(5)) return BlockForAMoment(context);
  taken_ = 0;
  return tuples_.size() < most_ ? Step::kNeedInput : Step::kDone;
}

Step TupleSink::Finish(TaskContext& context) {
  NAM_CHECK(finishes_left_ > 0, "a sink that has finished is left alone");
  if (random_.OneIn(2)) return BlockForAMoment(context);
  return --finishes_left_ > 0 ? Step::kHaveMore : Step::kDone;
}

StepDriver::StepDriver(uint64_t seed, uint64_t budget_bytes) : random_(seed), budget_(budget_bytes) {
  last_seed = seed;
  std::signal(SIGABRT, [](int) { std::fprintf(stderr, "NAM_SEED=%llu\n", last_seed); });
}

std::unique_ptr<StepTask> Checked(std::unique_ptr<StepTask> step) {
  return std::make_unique<CheckedStep>(std::move(step));
}

absl::Status RunToEnd(PipelineTask& task, TaskContext& context) {
  while (true) {
    switch (task.Run(context)) {
      case Step::kDone:
        return context.error();
      case Step::kFailed:
        NAM_CHECK(!context.error().ok(), "a task that fails says why");
        return context.error();
      case Step::kBlocked:
        NAM_CHECK(context.gate() != nullptr, "a blocked task says what it waits for");
        while (!context.gate()->open()) std::this_thread::yield();
        break;
      default:
        NAM_CHECK(false, "a task of a source that is not fed never needs input");
    }
  }
}

absl::StatusOr<std::vector<Tuple>> StepDriver::Run(const plan::Schema& schema, std::span<const Tuple> input,
                                                   std::span<StepOperator* const> steps,
                                                   std::span<const ChunkShape> shapes) {
  NAM_CHECK(steps.size() == shapes.size());
  TaskContext context = NewContext();
  std::vector<std::unique_ptr<Chunk>> chunks;
  chunks.push_back(std::make_unique<Chunk>(schema.size(), schema.size()));
  std::vector<std::unique_ptr<StepTask>> tasks;
  for (size_t i = 0; i < steps.size(); ++i) {
    tasks.push_back(Checked(steps[i]->NewTask(context)));
    chunks.push_back(std::make_unique<Chunk>(shapes[i].columns, shapes[i].row_sets));
  }
  std::vector<Tuple> tuples;
  const size_t columns = shapes.empty() ? schema.size() : shapes.back().columns;
  PipelineTask task(
      std::make_unique<TupleSource>(schema, std::vector<Tuple>(input.begin(), input.end()), random_.Next()),
      std::move(tasks), std::make_unique<TupleSink>(columns, random_.Next(), tuples), std::move(chunks));
  NAM_RETURN_IF_ERROR(RunToEnd(task, context));
  return tuples;
}

absl::Status StepDriver::RunInto(const plan::Schema& schema, std::span<const Tuple> input, Sink& sink,
                                 int tasks) {
  std::vector<std::vector<Tuple>> shares(static_cast<size_t>(tasks));
  for (const Tuple& tuple : input) shares[random_.Below(shares.size())].push_back(tuple);
  std::vector<absl::Status> results(shares.size());
  std::vector<std::function<void()>> bodies;
  for (size_t i = 0; i < shares.size(); ++i) {
    bodies.push_back([&, i, seed = random_.Next()] {
      TaskContext context = NewContext();
      std::vector<std::unique_ptr<Chunk>> chunks;
      chunks.push_back(std::make_unique<Chunk>(schema.size(), schema.size()));
      PipelineTask task(std::make_unique<TupleSource>(schema, shares[i], seed), {}, sink.NewTask(context),
                        std::move(chunks));
      results[i] = RunToEnd(task, context);
    });
  }
  const auto run = [&bodies] {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < bodies.size(); ++i) threads.emplace_back(bodies[i]);
    bodies[0]();
    for (std::thread& thread : threads) thread.join();
  };
  run();
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  std::atomic<uint32_t> next = 0;
  const uint32_t parts = sink.CombineParts();
  for (size_t i = 0; i < bodies.size(); ++i) {
    bodies[i] = [&, i] {
      TaskContext context = NewContext();
      for (uint32_t part = next++; part < parts && results[i].ok(); part = next++)
        results[i] = sink.Combine(context, part);
    };
  }
  run();
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace nam::execution
