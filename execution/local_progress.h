#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "execution/task.h"

namespace nam::execution {

struct PreparedPipeline;

/// Counts the rows that leave sources and steps on one thread, and reports them after each chunk; the
/// receiver limits its own rate.
///
///     source ─▶ counted ─▶ step ─▶ counted ─▶ … ─▶ sink
///
/// A step that compares many pairs of rows and passes few reports, too.
class LocalProgress {
 public:
  void OnProgress(std::function<void(uint64_t rows)> report) { report_ = std::move(report); }
  void Add(uint64_t rows) {
    rows_ += rows;
    if (report_) report_(rows_);
  }
  /// Counts tasks of the pipeline's steps made from now on. This outlives them.
  void Watch(PreparedPipeline& pipeline);
  /// The same for a source's task. Counts nothing without a receiver.
  std::unique_ptr<SourceTask> Watched(std::unique_ptr<SourceTask> source);

 private:
  std::function<void(uint64_t rows)> report_;
  uint64_t rows_ = 0;
};

}  // namespace nam::execution
