#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/rows/row_layout.h"
#include "execution/sort/row_order.h"
#include "execution/sort/rows_plan.h"
#include "execution/task.h"
#include "plan/schema.h"
#include "proto/compute.pb.h"
#include "storage/scratch.h"

/// Sorted runs in scratch memory: rows of an order that memory has no room for.
///
///     rows ─▶ table, full ─▶ sort ─▶ run 0: page, page, …  ─┐
///                  again  ─▶ sort ─▶ run 1: page, page, …   ├─▶ RunMerge ─▶ rows in their order
///                  …                                        ┘
namespace nam::execution {

struct ScratchRun {
  std::vector<storage::ScratchPage> pages;
  uint64_t rows = 0;
  uint64_t attempt = 0;  // that its pages carry
};

/// The most runs that one attempt may leave.
inline constexpr uint32_t kAttemptRunsMax = 1u << 20;

/// How the rows of runs lie: follows from the rows and the budget of who writes and who merges them, so that
/// both agree. The smaller the budget the smaller the pages, since a merge has two of each run; but rows with
/// texts have the largest.
absl::StatusOr<std::unique_ptr<const RowsPlan>> MakeRunsPlan(const plan::Schema& rows, uint64_t budget_bytes);

/// For the coordinator: each run is a part of the directory.
proto::Directory DirectoryOf(std::span<const ScratchRun> runs, uint64_t attempt, uint32_t pipeline);
/// DATA_LOSS unless a directory from elsewhere is one of runs of this layout: see CheckDirectory.
absl::StatusOr<std::vector<ScratchRun>> RunsOf(const proto::Directory& directory, const RowLayout& layout);

/// Where a task writes runs; no space: there is no scratch memory.
struct RunPlace {
  storage::ScratchSpace* space = nullptr;
  storage::Channel* channel = nullptr;
};
/// Asked when a task has rows to write.
using FindRunPlace = std::function<absl::StatusOr<RunPlace>(TaskContext& context)>;

}  // namespace nam::execution
