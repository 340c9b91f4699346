#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/join/probe.h"
#include "execution/join/row_build.h"
#include "execution/memory_budget.h"
#include "execution/partition/part_pages.h"
#include "execution/partition/partition_source.h"
#include "execution/scan/piece_claims.h"
#include "execution/task.h"

namespace nam::execution {

/// Joins two sides that lie by parts of their keys in scratch memory (plan::JoinSource). A task claims a
/// part, builds a table over one side's rows of it, and probes with the other's:
///
///     claim ─▶ READ, build ─▶ READ, probe ─▶ rows without a partner ─▶ claim …
///                 │ larger than the task's memory
///                 └▶ half the slice: only rows whose hash has this next bit; then the other half
///
/// Each slice reads its part anew, on both sides, so it takes time and no further scratch memory. If no bits
/// are left for slices, rows of equal keys are too many to fit: 53200.
///
/// A part that exceeds a task's share of the work comes in several pieces. Their tasks share the pages of one
/// side (plan::SharedSideOf), and each reads all of the other.
///
/// Every task may hold an equal share of what is left of the budget when the first one begins, so that none
/// takes what another needs; all together at most a quarter of the server's other memory, since downstream
/// operators take up to half of it. A share is at least kLeastShareBytes: if less is left, further tasks
/// claim nothing. Tables take memory from the grant as they grow.
class PartitionJoin final : public Source {
 public:
  /// A table of some thousand rows: a page, whose rows may be as short as a byte, and its heads and links.
  static constexpr uint64_t kLeastShareBytes = uint64_t{512} << 10;

  /// Rows that a pipeline has left by parts.
  struct Side {
    RowLayout layout;           // the pages'
    PartBy by;                  // as the other side's, except the fields
    uint32_t pipeline = 0;      // in the plan
    bool counts_nulls = false;  // leaves out rows with a NULL key
  };
  struct Options {
    Side probed, built;
    std::span<const proto::Directory> directories;
    /// Over the fields of `built`, in its layout, selected; with `match_bits` for right and full joins.
    RowBuild::Options build;
    /// Over the fields of `probed`. If the build side counts NULLs, its facts are those of all directories.
    ProbeOptions probe;
    int threads = 1;               // the most tasks
    MemoryGrant* grant = nullptr;  // the budget's
  };

  /// A piece of the queue is share `first_block` of the `blocks` that its part comes in. INVALID_ARGUMENT if
  /// a piece is malformed, or the join shares no side; DATA_LOSS: see PartPages::Make. References outlive the
  /// source.
  static absl::StatusOr<std::unique_ptr<PartitionJoin>> Make(Options options, PieceQueue& queue,
                                                             MemoryBudget& budget);

  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  std::unique_ptr<Chunk> NewChunk(size_t) const override { return NewProbeChunk(options_.probe); }
  bool exhausted() const override { return queue_.exhausted(); }
  void Count(proto::PipelineCounters& out) const override { totals().Count(out); }
  void Report(proto::AttemptReply& out) const override { totals().scan.Report(out); }
  /// Over the tasks that have ended.
  PartitionSource::Totals totals() const;
  /// The slices built; as many as parts, if none was too large.
  uint64_t slices() const;

 private:
  class Task;
  /// Called by the first task. With `mutex_`.
  void ShareMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PartitionJoin(Options options, PartPages probed, PartPages built, PieceQueue& queue, MemoryBudget& budget)
      : options_(std::move(options)),
        probed_(std::move(probed)),
        built_(std::move(built)),
        queue_(queue),
        budget_(budget) {}

  const Options options_;
  const PartPages probed_, built_;
  PieceQueue& queue_;
  MemoryBudget& budget_;
  mutable Mutex mutex_;
  uint64_t tasks_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t shares_ ABSL_GUARDED_BY(mutex_) = 0, share_bytes_
                                                ABSL_GUARDED_BY(mutex_) = 0;  // once the first task has begun
  PartitionSource::Totals totals_ ABSL_GUARDED_BY(mutex_);
  uint64_t slices_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace nam::execution
