#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/memory_budget.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/sort/scratch_run.h"
#include "execution/task.h"
#include "storage/channel.h"
#include "storage/scratch_streams.h"

namespace nam::execution {

/// Merges sorted runs in scratch memory, with two pages of each run in memory. Equal rows come in any order.
/// One thread. A run with long pages has room for the longest of them, too, behind all pages, so that rows
/// have numbers in one memory. It is begun when no chunk points to a page of its run.
///
///     channel's buffer   │ pages of run 0 │ run 1 │ … │ long page of run 1 │ long page of run 4 │
///
///     run 0   ─ page ─ page ─▶ head ─┐
///     run 1   ─ page ─▶ head ────────┼─ heap ─▶ row, row, …  up to kChunkRows at a time
///     run 2   ─ page ─ page ─▶ head ─┘
class RunMerge {
 public:
  /// The number of these runs that half of the remaining budget can merge at once; 0 if fewer than two.
  static uint32_t RunsMax(const RowsPlan& plan, std::span<const ScratchRun> runs, const MemoryBudget& budget);

  /// RESOURCE_EXHAUSTED if the budget has no room for the runs' pages; errors of `open`. `plan` and `budget`
  /// outlive the merge. Waits end with CANCELLED soon after `cancel` is set.
  static absl::StatusOr<std::unique_ptr<RunMerge>> Make(const RowsPlan& plan,
                                                        std::span<const OrderSlot> order,
                                                        std::vector<ScratchRun> runs, const OpenChannel& open,
                                                        MemoryBudget& budget,
                                                        const std::atomic<bool>& cancel);
  ~RunMerge();

  /// Returns the next rows: columns of `out` are the plan's slots, valid until the next call. False: there
  /// are no more. DATA_LOSS: a run differs from its directory, or is not sorted.
  absl::StatusOr<bool> Next(TaskContext& context, Chunk& out);

 private:
  /// The merge's position in a run.
  struct Cursor {
    uint64_t attempt = 0;
    uint64_t rows_left = 0;  // on pages not begun yet
    uint32_t slot = 0;       // its page's; of a long one the first
    bool is_long = false;    // the page
    uint32_t long_slot = 0;  // for long pages
    size_t page = 0;         // the number of the next one
    std::vector<std::pair<size_t, uint32_t>>
        long_pages;                // from that one on: number and bytes, the last first
    uint32_t place = 0, rows = 0;  // in the page
    uint32_t first = 0, end = 0;   // places whose prefixes are known
    uint64_t last_prefix = 0;      // the prefix of the last place before them
    std::unique_ptr<uint64_t[]> prefixes;
  };
  struct Head {
    OrderedRow row;
    uint32_t run = 0;
  };
  RunMerge(const RowsPlan& plan, std::span<const OrderSlot> order, std::vector<ScratchRun> runs,
           std::unique_ptr<storage::Channel> channel, MemoryBudget& budget, uint64_t bytes,
           const std::atomic<bool>& cancel);
  absl::Status Start(TaskContext& context);
  /// Begins the run's next page. False: the run has no more rows.
  absl::StatusOr<bool> BeginPage(TaskContext& context, uint32_t run);
  /// Puts the pieces of a long page together, after the pages before it were released.
  absl::StatusOr<std::span<std::byte>> ReadLongPage(uint32_t run, uint32_t bytes);
  bool NextIsLong(const Cursor& cursor) const {
    return !cursor.long_pages.empty() && cursor.long_pages.back().first == cursor.page;
  }
  absl::Status LoadPrefixes(Cursor& cursor);
  OrderedRow RowOf(const Cursor& cursor) const {
    return {cursor.prefixes[cursor.place - cursor.first], cursor.slot << shift_ | cursor.place};
  }
  /// Replaces the first head's row with its run's next one, or removes the run. False: that row's page is
  /// available only after the chunk has been read.
  absl::StatusOr<bool> Advance(TaskContext& context);
  void SiftDown(size_t at);

  const RowsPlan& plan_;
  const uint32_t shift_;
  MemoryBudget& budget_;
  const uint64_t bytes_;  // taken from the budget
  const std::unique_ptr<storage::Channel> channel_;
  storage::ScratchStreams streams_;
  const RowOrder order_;
  Frame frame_;
  Chunk keys_;  // its first key is evaluated
  std::vector<Cursor> cursors_;
  std::vector<Head> heads_;        // a heap: the first one's row is the least
  std::vector<uint32_t> used_up_;  // runs, once for each page that the last chunk may point to
  bool started_ = false;
  bool waits_ = false;  // the first head's row was given, and the next one is on a page without room
  std::unique_ptr<uint32_t[]> places_, numbers_;
};

}  // namespace nam::execution
