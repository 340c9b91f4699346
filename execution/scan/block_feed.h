#pragma once

#include <optional>
#include <utility>

#include "base/check.h"
#include "storage/block.h"

namespace nam::execution {

/// Passes blocks from outside to a scan's task instead of its own stream, one at a time. Only the task's
/// thread uses it; it outlives the task.
///
///     Give ─▶ the task runs until kNeedInput ─▶ Give ─▶ … ─▶ Close ─▶ the task runs until kDone
class BlockFeed {
 public:
  /// Gives a block of one of the table's partitions. Its bytes stay until the task returns kNeedInput or
  /// ends. The previous block has been used up.
  void Give(const storage::BlockView& block) {
    NAM_CHECK(!block_ && !closed_, "a task is fed one block at a time, until its feed is closed");
    block_ = block;
  }
  /// No more blocks come.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  /// For the task.
  std::optional<storage::BlockView> Take() { return std::exchange(block_, std::nullopt); }

 private:
  std::optional<storage::BlockView> block_;
  bool closed_ = false;
};

}  // namespace nam::execution
