#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "execution/chunk.h"
#include "execution/memory_budget.h"

namespace nam::proto {
class AttemptReply;
class Directory;
class PipelineCounters;
}  // namespace nam::proto
namespace nam::storage {
class Channel;
}
namespace nam::execution {
class Endpoint;
class PageWindow;
}  // namespace nam::execution

/// Sources, operators and sinks, and the task that runs a pipeline of them.
///
///     Source ──▶ step 0 ──▶ step 1 ──▶ … ──▶ Sink           shared by the pipeline's tasks on one server
///        │          │          │               │ NewTask
///     SourceTask  StepTask   StepTask       SinkTask        one thread each
///
/// Nothing here blocks. Each call returns the state of its task, and all of that state is in the task, not on
/// the stack: one tuple may match ten million rows, and the task can be put aside between any two of its
/// chunks. Sources that read blocks are the exception: they wait for their completions inside `Next`.
namespace nam::execution {

/// The error of a task that finds TaskContext::cancelled.
inline absl::Status QueryCancelled() {
  return absl::CancelledError("the query was cancelled");
}

enum class Step : uint8_t {
  kNeedInput,  // the input is used up
  kHaveMore,   // call again: with the same input (steps), or for the next chunk (sources)
  kBlocked,    // waits for the context's gate, or an exchange; then repeat the call
  kDone,       // no further input can change the result
  kFailed,     // the context has the error
};

/// The event that a blocked task waits for. Any thread opens it, once.
class Gate {
 public:
  bool open() const { return open_.load(std::memory_order_acquire); }
  void Open() { open_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> open_ = false;
};

/// A thread's channels to the memory servers, for one task at a time: for the blocks that it streams, the
/// words that it claims work at while blocks are in flight, and the pages that its sink writes to scratch
/// memory. Tasks of a streamed stage share the thread's endpoint of its exchanges.
struct TaskChannels {
  storage::Channel* blocks = nullptr;
  storage::Channel* claims = nullptr;
  storage::Channel* scratch = nullptr;
  Endpoint* exchange = nullptr;
};

/// The surroundings of the tasks of one thread. Owned by the thread; not shared.
class TaskContext {
 public:
  TaskContext(Clock& clock, MemoryBudget& budget, const std::atomic<bool>& cancel, TaskChannels channels = {})
      : clock_(clock), budget_(budget), cancel_(cancel), channels_(channels) {}

  /// Charges count · ps of virtual time for computation. Collects it until Settle passes it to the clock.
  void Charge(uint64_t count, int64_t ps) { uncharged_ps_ += static_cast<int64_t>(count) * ps; }
  /// Called at each block and before each wait; PipelineTask::Run calls it before it returns.
  void Settle() {
    if (uncharged_ps_ < 1000) return;
    clock_.Charge(uncharged_ps_ / 1000);
    uncharged_ps_ %= 1000;
  }
  bool cancelled() const { return cancel_.load(std::memory_order_relaxed); }
  /// The query's cancellation flag, for waits in functions that the task calls.
  const std::atomic<bool>& cancel() const { return cancel_; }

  /// Keeps the first error. Always returns kFailed.
  Step Fail(absl::Status error) {
    if (error_.ok()) error_ = std::move(error);
    return Step::kFailed;
  }
  const absl::Status& error() const { return error_; }
  /// Always returns kBlocked. The gate outlives the wait.
  Step BlockOn(const Gate& gate) {
    gate_ = &gate;
    return Step::kBlocked;
  }
  /// Always returns kBlocked, until something happens at the thread's endpoint.
  Step BlockOnExchange() {
    gate_ = nullptr;
    return Step::kBlocked;
  }
  /// The gate of the task that was blocked last; null: it waits for the endpoint.
  const Gate* gate() const { return gate_; }
  /// Counts a message sent or taken: other tasks of the thread may go on.
  void CountMessage() { ++messages_; }
  uint64_t messages() const { return messages_; }

  Clock& clock() { return clock_; }
  MemoryBudget& budget() { return budget_; }
  const TaskChannels& channels() const { return channels_; }

 private:
  Clock& clock_;
  MemoryBudget& budget_;
  const std::atomic<bool>& cancel_;
  const TaskChannels channels_;
  int64_t uncharged_ps_ = 0;
  absl::Status error_;
  const Gate* gate_ = nullptr;
  uint64_t messages_ = 0;
};

class SourceTask {
 public:
  /// Gives up work under way, also after a failure or a cancellation, when no other call comes before.
  virtual ~SourceTask() = default;
  /// kHaveMore: `out` has at least one row. kDone: it has none, and no more come. kNeedInput: a source that
  /// is fed from outside has none now.
  virtual Step Next(TaskContext& context, Chunk& out) = 0;
  /// A later step is done: gives up work under way. The last chunk is used up by then. Called at most once,
  /// not after kDone; Next is not called again.
  virtual void Stop() {}
};

class StepTask {
 public:
  virtual ~StepTask() = default;
  /// kNeedInput: `in` is used up. kHaveMore: call again with the same `in`, unchanged. In both cases `out`
  /// has the rows of this call, perhaps none: then the step calls SelectAll(0). kDone: as kNeedInput, and no
  /// more input is wanted; no call follows. After kBlocked and kFailed `out` is not read.
  virtual Step Push(TaskContext& context, const Chunk& in, Chunk& out) = 0;
  /// After the last input, unless a later step is done: emits rows that the step still holds. kHaveMore:
  /// `out` has rows, and Drain is called again; kDone: it has none.
  virtual Step Drain(TaskContext&, Chunk& out) {
    out.SelectAll(0);
    return Step::kDone;
  }
};

class SinkTask {
 public:
  virtual ~SinkTask() = default;
  /// kNeedInput, or kDone: more cannot change the result. After kBlocked the same chunk is given again: the
  /// sink remembers how much of it it has taken.
  virtual Step Consume(TaskContext& context, const Chunk& in) = 0;
  /// After the last chunk, also when the sink itself was done. kHaveMore: call again; long ends return it now
  /// and then, so that a cancelled task stops.
  virtual Step Finish(TaskContext&) { return Step::kDone; }
};

/// Immutable while tasks run, except as an implementation states.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::unique_ptr<SourceTask> NewTask(TaskContext& context) = 0;
  /// A chunk of so many columns, of the shape that tasks fill.
  virtual std::unique_ptr<Chunk> NewChunk(size_t columns) const {
    return std::make_unique<Chunk>(columns, 0);
  }
  /// Whether nothing is left for a further task, as far as is known.
  virtual bool exhausted() const { return false; }
  // Over tasks that have ended, any thread:
  virtual void Count(proto::PipelineCounters&) const {}
  /// Adds the pieces that each task has claimed.
  virtual void Report(proto::AttemptReply&) const {}
};

class StepOperator {
 public:
  virtual ~StepOperator() = default;
  virtual std::unique_ptr<StepTask> NewTask(TaskContext& context) = 0;
};

/// Sealed pages, in the memory of the sink that stored them.
using StoredPages = std::vector<std::span<const std::byte>>;

/// Takes the rows of a pipeline, and owns what becomes of them:
///
///     tasks ─▶ parts are combined ─▶ complete ─┬─ RowsAtRest   a source over its rows, in this process
///                                              ├─ Store        pages for another process
///                                              └─ Report       what lies in memory servers
class Sink {
 public:
  virtual ~Sink() = default;
  virtual std::unique_ptr<SinkTask> NewTask(TaskContext& context) = 0;
  /// After all tasks have finished: the number of parts that the threads combine, in any order and at once.
  /// 0: nothing.
  virtual uint32_t CombineParts() { return 0; }
  virtual absl::Status Combine(TaskContext&, uint32_t part) {
    (void)part;
    return absl::OkStatus();
  }
  /// Whether more rows cannot change the result. Any thread.
  virtual bool Satisfied() const { return false; }
  /// Whether tasks write over the context's channel for scratch memory.
  virtual bool writes_scratch() const { return false; }
  /// The rows that leave while tasks run; null: all of them stay until the end.
  virtual PageWindow* window() { return nullptr; }
  /// Adds sorted runs that an accepted attempt at another stage has left. Before the tasks end, on one
  /// thread.
  virtual absl::Status AddRuns(const proto::Directory& directory);

  /// A source over the rows that it will have when it is complete; null: it keeps none. `in_order`: one task
  /// reads them, in their order if they have one. The sink outlives the source.
  virtual std::unique_ptr<Source> RowsAtRest(bool /*in_order*/) { return nullptr; }
  // Once it is complete:
  /// Stores its rows or groups as pages that carry `attempt`, but for those that lie in memory servers.
  virtual absl::Status Store(TaskContext&, uint64_t /*attempt*/, StoredPages&) { return absl::OkStatus(); }
  /// Adds what it has left in memory servers, as the output of `pipeline`.
  virtual void Report(uint64_t /*attempt*/, uint32_t /*pipeline*/, proto::AttemptReply&) const {}
  virtual void Count(proto::PipelineCounters&) const {}
};

/// One thread's run of one pipeline. May stop after any chunk and resume later on the same thread.
class PipelineTask {
 public:
  /// `chunks[0]` is the source's, chunks[i + 1] that of steps[i].
  PipelineTask(std::unique_ptr<SourceTask> source, std::vector<std::unique_ptr<StepTask>> steps,
               std::unique_ptr<SinkTask> sink, std::vector<std::unique_ptr<Chunk>> chunks);

  /// kDone: the source has no more, or no step wants more of it, and the sink has finished. kBlocked: call
  /// again when the context's gate is open. kNeedInput: a fed source has nothing now. kFailed: the context
  /// has the error, which is CANCELLED soon after the query is; the task is not run again.
  Step Run(TaskContext& context);

  /// Rows that left the source, then each step.
  std::span<const uint64_t> rows() const { return rows_; }

 private:
  enum class SourceState : uint8_t { kLive, kUnwanted, kEnded };

  Step Advance(TaskContext& context);
  /// The sink and steps[at_] take chunks_[at_]. kHaveMore: go on.
  Step Consume(TaskContext& context);
  Step Push(TaskContext& context);
  /// Finds the next chunk with rows, from the sink backwards. kHaveMore: go on, with it if filled_.
  Step Refill(TaskContext& context);
  /// After the source: drains the steps, then ends the sink.
  Step Drain(TaskContext& context);
  /// Neither steps before `step` nor the source are asked any more.
  void CutOff(size_t step);
  Step Filled(size_t at);

  std::unique_ptr<SourceTask> source_;
  std::vector<std::unique_ptr<StepTask>> steps_;
  std::unique_ptr<SinkTask> sink_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<uint64_t> rows_;
  /// Steps that have more of the chunk before them. None after at_ has.
  std::vector<uint8_t> more_;
  /// chunks_[at_] has rows that steps_[at_], or the sink, has not used up.
  bool filled_ = false;
  size_t at_ = 0;
  SourceState source_state_ = SourceState::kLive;
  size_t first_live_ = 0;  // steps before it are drained or cut off
  bool ended_ = false;
};

/// Charges `count` accesses to random places of so many bytes, beside TaskContext::Charge, if virtual time
/// models caches. Otherwise does nothing. Called for a chunk, not for each of its rows.
void ChargeAccesses(TaskContext& context, uint64_t count, uint64_t working_set_bytes);

}  // namespace nam::execution
