#pragma once

#include <atomic>
#include <cstdint>

#include "execution/join/row_build.h"
#include "execution/task.h"

namespace nam::execution {

/// Shared by the tasks of a right or full join: hands out the rows of the build side that none of them has
/// matched, a page at a time, once all of them have used up their input.
class UnmatchedRows {
 public:
  explicit UnmatchedRows(const RowBuild& build) : build_(build) {}

  /// A task calls TaskBegins when it is made, and TaskHasProbed once it has no more input or ends.
  void TaskBegins() { probing_.fetch_add(1, std::memory_order_relaxed); }
  void TaskHasProbed() {
    if (probing_.fetch_sub(1, std::memory_order_acq_rel) == 1) probed_.Open();
  }
  /// Open when all tasks have probed: then all bits are set.
  const Gate& probed() const { return probed_; }
  void SetMatched(uint32_t row) const { build_.SetMatched(row); }

  /// The position of one task.
  struct Cursor {
    uint32_t page = 0, next = 0, rows = 0;  // of the task's page: places
  };
  /// Returns up to kChunkRows numbers of unmatched rows; 0: there are no more.
  uint32_t Next(Cursor& cursor, uint32_t* rows);

 private:
  const RowBuild& build_;
  std::atomic<uint32_t> probing_ = 0;
  Gate probed_;
  std::atomic<uint32_t> next_page_ = 0;
};

}  // namespace nam::execution
