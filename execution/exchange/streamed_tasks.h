#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "execution/exchange/endpoint.h"
#include "execution/task.h"

namespace nam::execution {

/// Runs one thread's tasks of pipelines that send and receive at the same time, in turns. Those nearest to
/// the result run first: so the last one always progresses, and returns the credit that the others wait for.
///
///     P0 scan ─▶ send ══▶ P1 receive ─▶ build       P1 runs until nothing has come, then P0 until it has no
///                                                   credit, then P1 …; if neither progresses, the thread
///                                                   waits for the endpoint
///
/// A receiver may end before its senders do, if no more rows are wanted: later arrivals are dropped, so that
/// no sender waits for credit.
class StreamedTasks {
 public:
  StreamedTasks(TaskContext& context, Endpoint& endpoint) : context_(context), endpoint_(endpoint) {}

  /// Pipelines come in the plan's order. `received`: the endpoint's exchange that it receives by.
  void Add(uint32_t pipeline, std::unique_ptr<PipelineTask> task, std::optional<uint32_t> received = {}) {
    running_.push_back({pipeline, std::move(task), received});
  }
  /// Runs until all have ended. Calls `ended` for each when it has, before its task is destroyed. Returns the
  /// first error of a task, or of the endpoint.
  absl::Status Run(const std::function<void(uint32_t pipeline, const PipelineTask& task)>& ended);
  /// How long all tasks that still ran have waited for the endpoint, so far.
  int64_t waited_ns() const { return waited_ns_; }

 private:
  struct Running {
    uint32_t pipeline = 0;
    std::unique_ptr<PipelineTask> task;
    std::optional<uint32_t> received;
  };
  /// Drops arrivals by exchanges whose receivers have ended.
  absl::Status DropUnwanted();
  /// Runs each task once, until one of them ends. False: none has progressed.
  absl::StatusOr<bool> RunEach(const std::function<void(uint32_t, const PipelineTask&)>& ended);
  absl::Status Wait();

  TaskContext& context_;
  Endpoint& endpoint_;
  std::vector<Running> running_;
  std::vector<uint32_t> unwanted_;  // exchanges that others still send by
  bool gated_ = false;              // a task waits for other threads of its server
  int64_t waited_ns_ = 0;
};

/// Waits until no message of the endpoint is in flight.
absl::Status AwaitIdle(Endpoint& endpoint, const std::atomic<bool>& cancel);

}  // namespace nam::execution
