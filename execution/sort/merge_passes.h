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
  /// The most passes over equally long runs. Short runs may be rewritten more often, so that long ones are
  /// rewritten less.
  static constexpr uint32_t kMost = 8;

  const RowsPlan& plan;
  std::span<const OrderSlot> order;
  const OpenChannel& open;
  const FindRunPlace& place;
  uint64_t attempt = 0;   // carried by the pages of new runs
  uint32_t runs_max = 2;  // merged at once; at least 2
};

struct MergedRuns {
  std::vector<ScratchRun> runs;
  uint32_t passes = 0;  // passes over a row of equally long runs
  uint64_t pages_written = 0;
};

/// Merges runs into longer ones until at most `runs_max` are left, the shortest first, so that few rows are
/// rewritten. Scratch memory keeps merged runs until the query ends. 53400 if so many runs need more than
/// MergePasses::kMost passes.
absl::StatusOr<MergedRuns> MergeToFewer(TaskContext& context, const MergePasses& options,
                                        std::vector<ScratchRun> runs, MemoryBudget& budget);

}  // namespace nam::execution
