#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/sorter.h"
#include "execution/task.h"
#include "execution/window/partition.h"
#include "plan/window.h"

namespace nam::execution {

/// Sorted rows, each with the results of window functions.
///
///     order   a 1 │ a 2 │ a 2 │ b 1 │ c 4 │ c 9 …       sorted by the keys of partitions, then by the
///     window's tasks   └───── segment ──────┘ └── segment ──     whole partitions, some thousand rows
///
/// A task computes its segment by partitions, then reads it as chunks; so memory grows with the largest
/// partition of each task. Segments are claimed in their order: a single task preserves it. For rows in
/// sorted runs, one task takes a segment at a time into memory: 53200 if a partition is too large.
class WindowSource final : public Source {
 public:
  struct Options {
    std::vector<OrderSlot> partition;  // the first sort keys
    std::vector<OrderSlot> order;      // the next ones
    std::vector<plan::WindowCall> calls;
  };
  /// INVALID_ARGUMENT for calls that plan::ResultOf refuses. `rows` are complete; they outlive the source.
  static absl::StatusOr<std::unique_ptr<WindowSource>> Make(const OrderedRows& rows, Options options);
  /// The rows of a sorter that is complete when tasks are made, and outlives the source.
  static absl::StatusOr<std::unique_ptr<WindowSource>> Make(const Sorter& sorter, Options options);

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

  /// The rows' slots, then one for each call. Chunks that tasks fill have as many columns, and no row sets of
  /// their own.
  const plan::Schema& schema() const { return schema_; }
  /// Distinct arrays of row numbers that the columns of such a chunk point to: see
  /// ProbeOptions::input_row_sets.
  uint32_t row_sets() const;

 private:
  class Segment;
  class Task;
  class MergedTask;
  WindowSource(const OrderedRows& rows, Options options)
      : options_(std::move(options)), window_(rows, options_.partition, options_.order) {}

  const Options options_;
  const WindowRows window_;
  const Sorter* sorter_ = nullptr;  // for rows that may be in runs
  plan::Schema schema_;
  std::atomic<uint64_t> next_segment_ = 0;
};

}  // namespace nam::execution
