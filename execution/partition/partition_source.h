#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/memory_budget.h"
#include "execution/partition/part_pages.h"
#include "execution/scan/piece_claims.h"
#include "execution/scan/scan_totals.h"
#include "execution/task.h"

namespace nam::execution {

/// What an earlier stage has left by parts in scratch memory (plan::PartitionSource): a task claims a part
/// and reads all of it. Rows flow as they are; states are merged, and the groups flow once the part has been
/// read, out of a table that the task uses for one part after the other. Of a part whose groups are more than
/// the budget allows those of a slice of it come first, for which it is read anew, then those of the next.
class PartitionSource final : public Source {
 public:
  struct Options {
    RowLayout layout;  // of the pages
    PartBy by;
    uint32_t pipeline = 0;  // of the plan, that left them
    std::span<const proto::Directory> directories;
    /// AggregateInput::kGroups, of this layout: states and the rows beside them are merged. nullptr: rows.
    const AggregatePlan* merge = nullptr;
  };
  struct Totals {
    ScanTotals scan;
    uint64_t pages = 0, bytes = 0;  // that were READ
  };

  /// Piece p of the queue is a part. INVALID_ARGUMENT if one is none; DATA_LOSS: see PartPages::Make. The
  /// queue and the budget outlive the source.
  static absl::StatusOr<std::unique_ptr<PartitionSource>> Make(const Options& options, PieceQueue& queue,
                                                               MemoryBudget& budget);

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  /// Of the tasks that have ended.
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
  mutable std::mutex mutex_;
  Totals totals_;  // guarded by mutex_
};

}  // namespace nam::execution
