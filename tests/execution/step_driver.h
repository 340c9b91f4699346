#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/task.h"
#include "tests/execution/tuples.h"

/// Drives steps and sinks as the engine does, on tuples of a test.
namespace nam::execution {

/// The columns and row sets of a step's output.
struct ChunkShape {
  size_t columns = 0;
  size_t row_sets = 0;
};

/// Hands out `tuples` in chunks of 1 to 1,024 rows, blocked at random in between.
class TupleSource final : public SourceTask {
 public:
  TupleSource(plan::Schema schema, std::vector<Tuple> tuples, uint64_t seed)
      : random_(seed), maker_(std::move(schema), random_), tuples_(std::move(tuples)) {}
  Step Next(TaskContext& context, Chunk& out) override;
  void Stop() override;
  bool stopped() const { return stopped_; }

 private:
  RandomStream random_;
  ChunkMaker maker_;
  const std::vector<Tuple> tuples_;
  size_t done_ = 0;
  bool stopped_ = false;
  bool ended_ = false;
};

/// Keeps the tuples that arrive, in order. Blocks at random in the middle of a chunk, and wants `most` at the
/// most.
class TupleSink final : public SinkTask {
 public:
  TupleSink(size_t columns, uint64_t seed, std::vector<Tuple>& tuples, size_t most = SIZE_MAX)
      : columns_(columns), random_(seed), tuples_(tuples), most_(most) {}
  Step Consume(TaskContext& context, const Chunk& in) override;
  Step Finish(TaskContext& context) override;

 private:
  const size_t columns_;
  RandomStream random_;
  std::vector<Tuple>& tuples_;
  const size_t most_;
  uint32_t taken_ = 0;
  int finishes_left_ = 2;
};

/// A step's task that aborts where the step breaks the contract of StepTask: output that is not stated, empty
/// or out of order, calls that must not come, an input that changes before it is used up.
std::unique_ptr<StepTask> Checked(std::unique_ptr<StepTask> step);

/// Runs a task to its end; spins while its gate is closed.
absl::Status RunToEnd(PipelineTask& task, TaskContext& context);

class StepDriver {
 public:
  /// A failed check prints the seed.
  explicit StepDriver(uint64_t seed, uint64_t budget_bytes = uint64_t{1} << 30);

  /// Runs `input` through the steps (steps[i] into chunks of shapes[i]) and returns the output of the last
  /// one, in order. Chunk sizes, selections, kinds of columns and waits follow from the seed.
  absl::StatusOr<std::vector<Tuple>> Run(const plan::Schema& schema, std::span<const Tuple> input,
                                         std::span<StepOperator* const> steps,
                                         std::span<const ChunkShape> shapes);
  /// Runs `input` into the sink with this many tasks on threads of their own, each with its share of the
  /// input. When the tasks are gone, as many threads combine all parts. A single task runs on the caller's
  /// thread.
  absl::Status RunInto(const plan::Schema& schema, std::span<const Tuple> input, Sink& sink, int tasks = 1);

  MemoryBudget& budget() { return budget_; }
  RandomStream& random() { return random_; }
  std::atomic<bool>& cancel() { return cancel_; }
  TaskContext NewContext() { return {RealClock(), budget_, cancel_}; }

 private:
  RandomStream random_;
  MemoryBudget budget_;
  std::atomic<bool> cancel_ = false;
};

}  // namespace nam::execution
