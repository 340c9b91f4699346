#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/memory_budget.h"
#include "execution/partition/part_pages.h"
#include "execution/scan/piece_claims.h"
#include "execution/scan/scan_totals.h"
#include "execution/task.h"

namespace nam::execution {

/// Reads what an earlier stage has left by parts in scratch memory (plan::PartitionSource): a task claims a
/// part and reads all of it. Rows flow as they are. States are merged, and the groups flow once the part has
/// been read, out of a table that the task reuses for each part. If a part has more groups than the budget
/// allows, the task reads it once for each slice of its groups.
class PartitionSource final : public Source {
 public:
  struct Options {
    RowLayout layout;  // the pages'
    PartBy by;
    uint32_t pipeline = 0;  // in the plan: the one that left the pages
    std::span<const proto::Directory> directories;
    /// AggregateInput::kGroups, of this layout: merges states and the rows beside them. nullptr: rows.
    const AggregatePlan* merge = nullptr;
  };
  struct Totals {
    ScanTotals scan;
    uint64_t pages = 0, bytes = 0;  // READ so far

    void Count(proto::PipelineCounters& out) const;
  };

  /// Piece p of the queue is a part. INVALID_ARGUMENT if one is not; DATA_LOSS: see PartPages::Make. The
  /// queue and the budget outlive the source.
  static absl::StatusOr<std::unique_ptr<PartitionSource>> Make(const Options& options, PieceQueue& queue,
                                                               MemoryBudget& budget);

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  bool exhausted() const override { return queue_.exhausted(); }
  void Count(proto::PipelineCounters& out) const override { totals().Count(out); }
  void Report(proto::AttemptReply& out) const override { totals().scan.Report(out); }
  /// Over the tasks that have ended.
  Totals totals() const;

 private:
  class Task;
  PartitionSource(const Options& options, PartPages pages, PieceQueue& queue, MemoryBudget& budget)
      : layout_(options.layout),
        by_(options.by),
        merge_(options.merge),
        pages_(std::move(pages)),
        queue_(queue),
        budget_(budget) {}

  const RowLayout layout_;
  const PartBy by_;
  const AggregatePlan* const merge_;
  const PartPages pages_;
  PieceQueue& queue_;
  MemoryBudget& budget_;
  mutable Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
