#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "fabric/fabric.h"

namespace nam::session {

/// Cancels the statement that runs once its time is over. Waits on a thread of its own, which only a
/// statement with a bound has.
class StatementTimer {
 public:
  /// `timeout_ms` 0: no bound. Borrows the others; they outlive it.
  StatementTimer(fabric::Fabric& fabric, int64_t timeout_ms, std::atomic<bool>& cancel);
  ~StatementTimer() { Stop(); }
  StatementTimer(const StatementTimer&) = delete;
  StatementTimer& operator=(const StatementTimer&) = delete;

  /// From now on it cancels nothing. Whether it has.
  bool Stop();

 private:
  std::atomic<bool> fired_ = false;
  std::unique_ptr<fabric::Event> over_;     // null: no bound
  std::unique_ptr<fabric::Thread> thread_;  // uses both
};

}  // namespace nam::session
