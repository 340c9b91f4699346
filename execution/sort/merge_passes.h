#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/memory_budget.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/sort/run_merge.h"
#include "execution/sort/scratch_run.h"
#include "execution/task.h"

namespace nam::execution {

struct MergePasses {
  /// Runs that are equally long are not written again more often. Of others the short ones may be, so that
  /// the long ones are less often.
  static constexpr uint32_t kMost = 8;

  const RowsPlan& plan;
  std::span<const OrderSlot> order;
  const OpenChannel& open;
  const FindRunPlace& place;
  uint64_t attempt = 0;   // that the pages of new runs carry
  uint32_t runs_max = 2;  // that are merged at once; at least 2
};

struct MergedRuns {
  std::vector<ScratchRun> runs;
  uint32_t passes = 0;  // how often a row of runs that are equally long is written again
  uint64_t pages_written = 0;
};

/// Merges runs into longer ones until at most `runs_max` are left, the shortest first, so that few rows are
/// written again. Scratch memory keeps what was merged until the query ends. 53400 if so many runs need more
/// than MergePasses::kMost passes.
absl::StatusOr<MergedRuns> MergeToFewer(TaskContext& context, const MergePasses& options,
                                        std::vector<ScratchRun> runs, MemoryBudget& budget);

}  // namespace nam::execution
