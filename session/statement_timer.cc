#include "session/statement_timer.h"

namespace nam::session {

StatementTimer::StatementTimer(fabric::Fabric& fabric, int64_t timeout_ms, std::atomic<bool>& cancel) {
  if (timeout_ms <= 0) return;
  over_ = fabric.CreateEvent();
  const Deadline deadline = fabric.clock().After(timeout_ms * 1000);
  auto started = fabric.TryStartThread("nam-timeout", [this, deadline, &cancel] {
    if (over_->Wait(deadline)) return;
    fired_ = true;
    cancel = true;
  });
  if (started.ok()) {
    thread_ = *std::move(started);
  } else {
    refused_ = started.status();
  }
}

bool StatementTimer::Stop() {
  if (over_ != nullptr) over_->Set();
  thread_.reset();
  return fired_;
}

}  // namespace nam::session
