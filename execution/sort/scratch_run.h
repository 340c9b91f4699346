#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "plan/schema.h"
#include "proto/pages.pb.h"
#include "storage/channel.h"
#include "storage/scratch.h"

/// Sorted runs in scratch memory, for rows that do not fit memory.
///
///     rows ─▶ table, full ─▶ sort ─▶ run 0: page, page, …  ─┐
///                  again  ─▶ sort ─▶ run 1: page, page, …   ├─▶ RunMerge ─▶ rows in their order
///                  …                                        ┘
namespace nam::execution {

struct ScratchRun {
  std::vector<storage::ScratchPage> pages;
  uint64_t rows = 0;
  uint64_t attempt = 0;  // carried by its pages
};

/// The most bytes of a long page of the run (execution/rows/row_layout.h); 0 if it has none.
uint32_t LongestPageOf(const ScratchRun& run);

/// The most runs that one attempt may leave.
inline constexpr uint32_t kAttemptRunsMax = 1u << 20;

/// The layout of runs' rows. It follows from the rows and the settings' memory bound, which servers and the
/// session share. The smaller the budget the smaller the pages, since a merge has two of each run; but rows
/// with texts have the largest.
absl::StatusOr<std::unique_ptr<const RowsPlan>> MakeRunsPlan(const plan::Schema& rows, uint64_t bytes_max);

/// For the coordinator: each run is a part of the directory.
proto::Directory DirectoryOf(std::span<const ScratchRun> runs, uint64_t attempt, uint32_t pipeline);
/// DATA_LOSS unless a directory from elsewhere describes runs of this layout: see CheckDirectory.
absl::StatusOr<std::vector<ScratchRun>> RunsOf(const proto::Directory& directory, const RowLayout& layout);

/// The place into which a task writes runs, one writer at a time. Null space: there is no scratch memory.
struct RunPlace {
  storage::ScratchSpace* space = nullptr;
  storage::Channel* channel = nullptr;
};
/// Called when a task has rows to write.
using FindRunPlace = std::function<absl::StatusOr<RunPlace>(TaskContext& context)>;
/// Opens a channel for merges, with a buffer of at least so many bytes.
using OpenChannel = std::function<absl::StatusOr<std::unique_ptr<storage::Channel>>(uint64_t buffer_bytes)>;

/// Scratch memory for sorts of the session, opened when one needs it. On each thread several sorts take in
/// rows by turns and share one place. A writer has it to itself until it ends, and ends before the next
/// chunk.
struct SortScratch {
  FindRunPlace place;  // empty: there is none
  OpenChannel channel;
  uint64_t attempt = 0;  // carried by pages
};

/// A sink's options for its runs.
struct RunOptions {
  plan::Runs runs = plan::Runs::kNever;
  FindRunPlace place;
  const RowsPlan* plan = nullptr;  // of the runs' pages: MakeRunsPlan. Outlives the sink
  uint64_t attempt = 0;            // carried by pages
  int threads = 1;                 // of an attempt, that share the budget
};

/// The share of a budget that rows at rest and their order may take on each thread before they become a run.
inline uint64_t RunShare(const MemoryBudget& budget, int threads) {
  return budget.bytes() / 4 / static_cast<uint64_t>(std::max(threads, 1));
}

}  // namespace nam::execution
