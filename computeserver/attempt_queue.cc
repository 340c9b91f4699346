#include "computeserver/attempt_queue.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace nam::computeserver {
namespace {

/// How soon a caller that has given up leaves the queue.
constexpr int64_t kCheckUs = 5'000;

}  // namespace

absl::StatusOr<AttemptQueue::Turn> AttemptQueue::Begin(const catalog::IncomingCall& call, Kind kind) {
  Waiter waiter;
  {
    const std::lock_guard lock(mutex_);
    if (running_ < running_max_) {
      ++running_;
      return Turn(*this);
    }
    if (waiting_.size() >= waiting_max_ && kind == Kind::kNew) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "the compute server runs %d queries, and %d wait for their turn", running_, waiting_.size()));
    }
    waiter.turn = fabric_.CreateEvent();
    waiting_.push_back(&waiter);
  }
  while (!waiter.turn->Wait(fabric_.clock().After(kCheckUs))) {
    if (call.Cancelled() && GiveUp(waiter)) return absl::CancelledError("cancelled");
  }
  return Turn(*this);
}

bool AttemptQueue::GiveUp(const Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(waiting_.begin(), waiting_.end(), &waiter);
  if (place == waiting_.end()) return false;
  waiting_.erase(place);
  return true;
}

void AttemptQueue::End() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    --running_;
    return;
  }
  // The turn goes on to who has waited longest.
  waiting_.front()->turn->Set();
  waiting_.pop_front();
}

}  // namespace nam::computeserver
