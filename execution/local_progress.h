#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "execution/task.h"

namespace nam::execution {

struct PreparedPipeline;

/// Counts the rows that leave sources and steps on all threads, and reports them after each chunk of one of
/// them; the receiver limits its own rate.
///
///     source ─▶ counted ─▶ step ─▶ counted ─▶ … ─▶ sink
///
/// A step that compares many pairs of rows and passes few reports, too.
class LocalProgress {
 public:
  /// Called on the context's thread.
  void OnProgress(std::function<void(uint64_t rows)> report, const TaskContext& reporting) {
    report_ = std::move(report);
    reporting_ = &reporting;
  }
  void Add(const TaskContext& context, uint64_t rows) {
    const uint64_t all = rows_.fetch_add(rows, std::memory_order_relaxed) + rows;
    if (&context == reporting_) report_(all);
  }
  /// Counts tasks of the pipeline's steps made from now on. This outlives them.
  void Watch(PreparedPipeline& pipeline);
  /// The same for a source's task. Counts nothing without a receiver.
  std::unique_ptr<SourceTask> Watched(std::unique_ptr<SourceTask> source);

 private:
  std::function<void(uint64_t rows)> report_;
  const TaskContext* reporting_ = nullptr;
  std::atomic<uint64_t> rows_ = 0;
};

}  // namespace nam::execution
