#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "fabric/fabric.h"

namespace nam::session {

/// Cancels the running statement after its time. Waits on a thread of its own, which only a statement with a
/// bound has.
class StatementTimer {
 public:
  /// `timeout_ms` 0: no bound. Borrows the others; they outlive it.
  StatementTimer(fabric::Fabric& fabric, int64_t timeout_ms, std::atomic<bool>& cancel);
  ~StatementTimer() { Stop(); }
  StatementTimer(const StatementTimer&) = delete;
  StatementTimer& operator=(const StatementTimer&) = delete;

  /// Not OK if there is no thread for the bound: then the statement must not run.
  const absl::Status& refused() const { return refused_; }
  /// Stops the timer. Returns whether it has cancelled the statement.
  bool Stop();

 private:
  std::atomic<bool> fired_ = false;
  absl::Status refused_;
  std::unique_ptr<fabric::Event> over_;     // null: no bound
  std::unique_ptr<fabric::Thread> thread_;  // uses both
};

}  // namespace nam::session
