#include "execution/sort/merge_passes.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/sort/run_writer.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

/// The most times that a row is rewritten if so many runs are merged by `runs_max`.
uint32_t PassesFor(uint64_t runs, uint32_t runs_max) {
  uint32_t passes = 0;
  for (; runs > runs_max; runs = (runs + runs_max - 1) / runs_max) ++passes;
  return passes;
}

}  // namespace

absl::StatusOr<MergedRuns> MergeToFewer(TaskContext& context, const MergePasses& options,
                                        std::vector<ScratchRun> runs, MemoryBudget& budget) {
  MergedRuns merged{.passes = PassesFor(runs.size(), options.runs_max)};
  if (merged.passes > MergePasses::kMost) {
    return UserError(sqlstate::kConfigurationLimit,
                     absl::StrCat("the rows to be sorted are ", runs.size(), " runs, of which only ",
                                  options.runs_max, " fit the query's memory at once"),
                     -1, "raise nam.result_mib_max, or add a filter");
  }
  if (merged.passes > 0) {
    NAM_ASSIGN_OR_RETURN(const RunPlace place, options.place(context));
    if (place.space == nullptr) return absl::InternalError("sorted runs without scratch memory");
    RunWriter writer(options.plan, options.attempt, place, budget, context.cancel());
    Chunk rows(options.plan.schema().size(), 0);
    // The longest come first, and are merged once, at the end.
    const auto longer = [](const ScratchRun& a, const ScratchRun& b) { return a.rows > b.rows; };
    std::sort(runs.begin(), runs.end(), longer);
    while (runs.size() > options.runs_max) {
      const size_t together = std::min<size_t>(options.runs_max, runs.size() - options.runs_max + 1);
      std::vector<ScratchRun> some(std::make_move_iterator(runs.end() - static_cast<ptrdiff_t>(together)),
                                   std::make_move_iterator(runs.end()));
      runs.resize(runs.size() - together);
      NAM_ASSIGN_OR_RETURN(const std::unique_ptr<RunMerge> merge,
                           RunMerge::Make(options.plan, options.order, std::move(some), options.open, budget,
                                          context.cancel()));
      while (true) {
        NAM_ASSIGN_OR_RETURN(const bool more, merge->Next(context, rows));
        if (!more) break;
        NAM_RETURN_IF_ERROR(writer.Append(context, rows));
      }
      NAM_ASSIGN_OR_RETURN(ScratchRun run, writer.EndRun(context));
      NAM_RETURN_IF_ERROR(writer.Flush());
      runs.insert(std::upper_bound(runs.begin(), runs.end(), run, longer), std::move(run));
    }
    merged.pages_written = writer.pages();
  }
  merged.runs = std::move(runs);
  return merged;
}

}  // namespace nam::execution
