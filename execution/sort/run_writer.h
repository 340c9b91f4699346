#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/memory_budget.h"
#include "execution/rows/long_page.h"
#include "execution/rows/row_table.h"
#include "execution/rows/row_writer.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/scratch_run.h"
#include "execution/task.h"
#include "storage/scratch.h"

namespace nam::execution {

/// Writes runs into scratch memory, one after the other. One thread. The budget pays for one page, and for a
/// long one while there is one.
class RunWriter {
 public:
  /// All outlive the writer, which has the place's channel to itself.
  RunWriter(const RowsPlan& plan, uint64_t attempt, const RunPlace& place, MemoryBudget& budget,
            const std::atomic<bool>& cancel);
  ~RunWriter();

  /// Appends the next rows. 53200 if scratch memory is full; RESOURCE_EXHAUSTED if the budget is.
  absl::Status Append(TaskContext& context, const Chunk& chunk);
  /// Appends a table's rows, merged from sorted spans: a whole run.
  absl::Status AppendSorted(TaskContext& context, const RowOrder& order, const RowTable& table,
                            std::vector<std::span<const OrderedRow>> spans);
  /// Ends a run of the rows since the last one. It may be read after Flush.
  absl::StatusOr<ScratchRun> EndRun(TaskContext& context);
  /// Waits for all pages.
  absl::Status Flush();

  uint64_t pages() const { return scratch_.pages(); }
  uint64_t bytes() const { return scratch_.bytes(); }

 private:
  absl::Status NewPage();
  absl::Status WritePage(TaskContext& context);
  /// Writes rows[done] on a long page.
  absl::Status WriteLongRow(TaskContext& context, const Chunk& chunk, Selection rows, uint32_t& done);

  const RowsPlan& plan_;
  const uint64_t attempt_;
  MemoryBudget& budget_;
  storage::ScratchWriter scratch_;
  RowWriter writer_;
  Frame frame_;
  std::byte* page_ = nullptr;
  LongPage long_page_;
  ScratchRun run_;
};

}  // namespace nam::execution
