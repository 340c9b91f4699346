#pragma once

#include <span>

#include "base/check.h"
#include "execution/scan/record_select.h"
#include "execution/task.h"
#include "plan/work_cost.h"

namespace nam::execution {

/// Feeds rows of a record table from outside, as tables store them: a transaction has found them. One thread.
///
///     Give ─▶ the task runs until kNeedInput ─▶ Give ─▶ … ─▶ Close ─▶ the task runs until kDone
class RecordFeed final : public SourceTask {
 public:
  /// The select outlives the feed.
  RecordFeed(const RecordSelect& select, MemoryBudget& budget) : select_(select, budget) {}

  /// Gives at most kChunkRows rows. They stay until the task returns kNeedInput or ends; the previous ones
  /// have been used up.
  void Give(std::span<const std::byte* const> rows) {
    NAM_CHECK(rows_.empty() && !closed_, "a task is fed some rows at a time, until its feed is closed");
    rows_ = rows;
  }
  /// No more rows come.
  void Close() { closed_ = true; }

  Step Next(TaskContext& context, Chunk& out) override {
    if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
    if (!std::exchange(begun_, true)) {
      if (const absl::Status status = select_.Begin(out); !status.ok()) return context.Fail(status);
    }
    if (rows_.empty()) return closed_ ? Step::kDone : Step::kNeedInput;
    context.Charge(rows_.size(), plan::work_cost::kRecordRowPs);
    const Step step = select_.Run(context, std::exchange(rows_, {}), out);
    return step == Step::kNeedInput && closed_ ? Step::kDone : step;
  }

 private:
  RecordSelect::Task select_;
  std::span<const std::byte* const> rows_;
  bool begun_ = false, closed_ = false;
};

}  // namespace nam::execution
