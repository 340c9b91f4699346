#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "execution/prepared_stage.h"
#include "execution/task.h"

namespace nam::execution {

/// Counts the rows that leave sources and steps on one thread, and tells of them after each chunk: whoever is
/// told looks at the time.
///
///     source ─▶ counted ─▶ step ─▶ counted ─▶ … ─▶ sink
///
/// A step that looks at many pairs of rows and lets few pass tells so, too.
class LocalProgress {
 public:
  void OnProgress(std::function<void(uint64_t rows)> report) { report_ = std::move(report); }
  void Add(uint64_t rows) {
    rows_ += rows;
    if (report_) report_(rows_);
  }
  /// Tasks of the pipeline's steps that are made from now on are counted. This outlives them.
  void Watch(PreparedPipeline& pipeline);
  /// The same of a source's task. Nothing is counted if nobody is told.
  std::unique_ptr<SourceTask> Watched(std::unique_ptr<SourceTask> source);

 private:
  std::function<void(uint64_t rows)> report_;
  uint64_t rows_ = 0;
};

}  // namespace nam::execution
