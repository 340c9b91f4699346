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

/// One thread's tasks of pipelines that send and receive at the same time, in turns. Those nearest to the
/// result run first: so what comes last always goes on, and gives back the credit that the others wait for.
///
///     P0 scan ─▶ send ══▶ P1 receive ─▶ build       P1 runs until nothing has come, then P0 until it has no
///                                                   credit, then P1 …; the endpoint is waited for if neither
///                                                   goes on
///
/// A receiver may end before its senders do, if no more rows are wanted: what still comes is dropped, so that
/// nobody waits for credit.
class StreamedTasks {
 public:
  StreamedTasks(TaskContext& context, Endpoint& endpoint) : context_(context), endpoint_(endpoint) {}

  /// Pipelines come in the plan's order. `received`: the exchange that it receives by, of the endpoint.
  void Add(uint32_t pipeline, std::unique_ptr<PipelineTask> task, std::optional<uint32_t> received = {}) {
    running_.push_back({pipeline, std::move(task), received});
  }
  /// Runs until all have ended. `ended` is called for each when it has, before its task is gone. The first
  /// error of one, or of the endpoint.
  absl::Status Run(const std::function<void(uint32_t pipeline, const PipelineTask& task)>& ended);
  /// How long all that still ran have waited for the endpoint, so far.
  int64_t waited_ns() const { return waited_ns_; }

 private:
  struct Running {
    uint32_t pipeline = 0;
    std::unique_ptr<PipelineTask> task;
    std::optional<uint32_t> received;
  };
  /// What has come by exchanges whose receivers have ended.
  absl::Status DropUnwanted();
  /// Each once, until one of them ends. False: none has gone on.
  absl::StatusOr<bool> RunEach(const std::function<void(uint32_t, const PipelineTask&)>& ended);
  absl::Status Wait();

  TaskContext& context_;
  Endpoint& endpoint_;
  std::vector<Running> running_;
  std::vector<uint32_t> unwanted_;  // exchanges that others still send by
  bool gated_ = false;              // one waits for other threads of its server
  int64_t waited_ns_ = 0;
};

/// Until nothing that the endpoint has sent is on its way.
absl::Status AwaitIdle(Endpoint& endpoint, const std::atomic<bool>& cancel);

}  // namespace nam::execution
