#include "execution/sort/scratch_run.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/partition/part_directory.h"

namespace nam::execution {
namespace {

/// With less memory smaller pages let a merge have more runs.
constexpr uint64_t kLargePagesBudget = uint64_t{256} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<const RowsPlan>> MakeRunsPlan(const plan::Schema& rows, uint64_t bytes_max) {
  const bool texts = std::any_of(rows.begin(), rows.end(), [](const plan::Slot& slot) {
    return PhysicalOf(slot.type) == Physical::kText;
  });
  if (!texts && bytes_max < kLargePagesBudget) {
    absl::StatusOr<std::unique_ptr<const RowsPlan>> small = RowsPlan::Make(rows, RowLayout::kSmallPageBytes);
    if (small.ok()) return small;  // otherwise rows are too wide for it
  }
  return RowsPlan::Make(rows, RowLayout::kMostPageBytes);
}

uint32_t LongestPageOf(const ScratchRun& run) {
  uint32_t longest = 0, bytes = 0;
  for (const storage::ScratchPage& page : run.pages) {
    bytes = page.continues ? bytes + page.bytes : page.bytes;
    if (page.continues) longest = std::max(longest, bytes);
  }
  return longest;
}

proto::Directory DirectoryOf(std::span<const ScratchRun> runs, uint64_t attempt, uint32_t pipeline) {
  PartDirectory directory;
  for (uint32_t number = 0; number < runs.size(); ++number) {
    for (const storage::ScratchPage& page : runs[number].pages) directory.Add(number, page, 0);
  }
  proto::Directory out = directory.ToProto(attempt, pipeline);
  for (proto::PartPages& part : *out.mutable_parts()) part.set_rows(runs[part.part()].rows);
  return out;
}

absl::StatusOr<std::vector<ScratchRun>> RunsOf(const proto::Directory& directory, const RowLayout& layout) {
  NAM_RETURN_IF_ERROR(CheckDirectory(directory, kAttemptRunsMax, layout));
  std::vector<ScratchRun> runs;
  for (const proto::PartPages& part : directory.parts()) {
    ScratchRun& run = runs.emplace_back();
    run.rows = part.rows();
    run.attempt = directory.attempt();
    run.pages = PagesOf(part);
  }
  return runs;
}

}  // namespace nam::execution
