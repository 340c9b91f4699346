#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/task.h"
#include "fabric/fabric.h"

namespace nam::execution {

/// Waits until the gate is open. CANCELLED soon after the context is, or `stop` is set.
absl::Status AwaitGate(fabric::Fabric& fabric, TaskContext& context, const Gate& gate,
                       const std::atomic<bool>& stop);

/// The caller's thread, and others that are started for work that is worth it and end with that work:
///
///     caller    ──┬── work(0) ──┬── alone ──┬── work(0) ──┬──
///     nam-stage-1 └── work(1) ──┘           └── work(1) ──┘
///
/// Each has a context of its own, which stays. After the first error no work begins, and tasks that run are
/// cancelled.
class ThreadTeam {
 public:
  using Work = std::function<absl::Status(size_t thread)>;

  /// At most `size` threads. References outlive the team.
  ThreadTeam(fabric::Fabric& fabric, MemoryBudget& budget, const std::atomic<bool>& cancel, size_t size);

  size_t size() const { return contexts_.size(); }
  TaskContext& context(size_t thread) { return contexts_[thread]; }

  /// Runs work(0) here and work(1), … on other threads, and returns when all have ended. The first error of
  /// any work so far.
  absl::Status Together(size_t threads, const Work& work);
  /// Runs the task until it is done or wants to be fed.
  absl::StatusOr<Step> Run(size_t thread, PipelineTask& task);
  /// A source of the caller's thread that fails soon after another thread has.
  std::unique_ptr<SourceTask> Guarded(std::unique_ptr<SourceTask> source) const;
  /// The threads that have been started so far.
  uint64_t started() const { return started_; }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

 private:
  void WorkWithOthers(size_t threads, const Work& work);
  void Note(const absl::Status& status);

  fabric::Fabric& fabric_;
  std::atomic<bool> stop_ = false;    // cancels all threads but the caller's
  std::deque<TaskContext> contexts_;  // by thread
  uint64_t started_ = 0;              // by the caller
  Mutex mutex_;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
