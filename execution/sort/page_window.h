#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "execution/rows/row_appender.h"
#include "execution/rows/row_table.h"
#include "execution/task.h"

namespace nam::execution {

/// Rows that leave a sink while its tasks run: the full pages, a window of them at a time.
///
///     tasks ─▶ open pages ─▶ full pages ─ bytes_max of them: tasks wait ─▶ Store ─▶ read elsewhere ─┐
///       ▲                                                                                           │
///       └───────────────────────── pages to use again ◀────────────────────────────── GiveBack ◀────┘
///
/// Tasks go on as soon as a window has been taken. So the table has the pages of two windows, and beside them
/// what each task needs for a slice of a chunk. Thread-safe.
class PageWindow {
 public:
  /// The table outlives this.
  PageWindow(RowTable& table, uint64_t bytes_max) : table_(table), bytes_max_(bytes_max) {}

  /// Called whenever a window has become full, on the thread of the task that filled it. Set before tasks
  /// run.
  void OnFull(std::function<void()> told) { told_ = std::move(told); }

  /// The gate that a task waits for before it takes in a chunk; nullptr: it need not wait.
  std::shared_ptr<const Gate> Closed() const {
    if (!full_now_.load(std::memory_order_relaxed)) return nullptr;
    const MutexLock lock(mutex_);
    return gate_;
  }
  bool full() const { return full_now_.load(std::memory_order_acquire); }

  /// Adds pages that a task has filled; its appender gets as many to reuse, if there are any.
  void Add(std::span<const uint32_t> pages, RowAppender& appender);
  /// Takes all full pages, of a full window or after the last task, as sealed pages that carry `attempt`. The
  /// caller owns those whose numbers are returned until it gives them back. Tasks go on meanwhile.
  std::vector<uint32_t> Store(uint64_t attempt, StoredPages& pages);
  void GiveBack(std::span<const uint32_t> pages);

 private:
  std::vector<uint32_t> Take();

  RowTable& table_;
  const uint64_t bytes_max_;
  std::function<void()> told_;
  std::atomic<bool> full_now_ = false;  // changed with mutex_
  mutable Mutex mutex_;
  std::shared_ptr<Gate> gate_ ABSL_GUARDED_BY(mutex_);   // null: tasks need not wait
  std::vector<uint32_t> pages_ ABSL_GUARDED_BY(mutex_);  // full ones
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;           // of them
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
