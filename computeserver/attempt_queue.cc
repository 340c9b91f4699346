#include "computeserver/attempt_queue.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "execution/methods.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

/// How soon a caller that has given up leaves the queue.
constexpr int64_t kCheckUs = 5'000;

absl::Status QueueIsFull(size_t running, size_t waiting) {
  return UserError(
      execution::kTooManyQueries,
      absl::StrFormat("the compute server runs %d queries, and %d wait for their turn", running, waiting), -1,
      "run the query again later, or add compute servers");
}

}  // namespace

absl::StatusOr<AttemptQueue::Beginning> AttemptQueue::Begin(const catalog::IncomingCall& call,
                                                            const Needs& needs,
                                                            const std::function<void()>& relieve) {
  Waiter waiter{.needs = needs};
  waiter.needs.memory_bytes = std::min(needs.memory_bytes, memory_.bytes());
  {
    const MutexLock lock(mutex_);
    waiter.number = ++came_;
    waiting_.push_back(&waiter);
    Serve();
    if (!waiter.admitted && waiting_.size() > limits_.waiting_max) {
      waiting_.pop_back();
      return QueueIsFull(running_, waiting_.size());
    }
    if (!waiter.admitted) waiter.turn = fabric_.CreateEvent();
  }
  NAM_RETURN_IF_ERROR(AwaitTurn(call, waiter, relieve));
  return Beginning{Turn(*this), std::move(waiter.place)};
}

absl::StatusOr<AttemptQueue::Turn> AttemptQueue::Resume(const catalog::IncomingCall& call) {
  Waiter waiter;
  {
    const MutexLock lock(mutex_);
    resumed_.push_back(&waiter);
    Serve();
    if (!waiter.admitted) waiter.turn = fabric_.CreateEvent();
  }
  NAM_RETURN_IF_ERROR(AwaitTurn(call, waiter, {}));
  return Turn(*this);
}

absl::Status AttemptQueue::AwaitTurn(const catalog::IncomingCall& call, Waiter& waiter,
                                     const std::function<void()>& relieve) {
  if (waiter.turn == nullptr) return absl::OkStatus();
  while (!waiter.turn->Wait(fabric_.clock().After(kCheckUs))) {
    if (call.Cancelled() && GiveUp(waiter)) return absl::CancelledError("cancelled");
    if (relieve && HeldUp(waiter)) relieve();
  }
  return absl::OkStatus();
}

void AttemptQueue::Serve() {
  while (running_ < limits_.running_max) {
    const bool others_first = resumed_in_a_row_ >= limits_.running_max;
    if (others_first && ServeWaiting()) continue;
    if (!resumed_.empty()) {
      Admit(*resumed_.front());
      resumed_.pop_front();
      ++resumed_in_a_row_;
    } else if (others_first || !ServeWaiting()) {
      return;
    }
  }
}

bool AttemptQueue::ServeWaiting() {
  for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
    Waiter& waiter = **next;
    if (waiter.needs.windows && open_ >= limits_.open_max) continue;
    if (!memory_.Reserve(waiter.needs.memory_bytes)) {
      if (!LacksWhatEarlierOnesHold(waiter)) return false;
      continue;
    }
    open_ += waiter.needs.windows ? 1 : 0;
    waiter.place = std::make_shared<Place>(*this, waiter.needs, waiter.number);
    places_.insert(waiter.place.get());
    Admit(waiter);
    waiting_.erase(next);
    resumed_in_a_row_ = 0;
    return true;
  }
  return false;
}

bool AttemptQueue::LacksWhatEarlierOnesHold(const Waiter& waiter) const {
  uint64_t left = memory_.bytes();
  for (const Place* place : places_) {
    if (place->number_ < waiter.number) left -= std::min(left, place->memory_->bytes());
  }
  return waiter.needs.memory_bytes > left;
}

void AttemptQueue::Admit(Waiter& waiter) {
  ++running_;
  waiter.admitted = true;
  if (waiter.turn != nullptr) waiter.turn->Set();
}

bool AttemptQueue::GiveUp(const Waiter& waiter) {
  const MutexLock lock(mutex_);
  if (std::erase(waiting_, &waiter) + std::erase(resumed_, &waiter) == 0) return false;
  Serve();  // it may have held up later ones
  return true;
}

bool AttemptQueue::HeldUp(const Waiter& waiter) {
  const MutexLock lock(mutex_);
  return running_ < limits_.running_max && !waiting_.empty() && waiting_.front() == &waiter;
}

void AttemptQueue::EndTurn() {
  const MutexLock lock(mutex_);
  --running_;
  Serve();
}

void AttemptQueue::Leave(Place& place) {
  const MutexLock lock(mutex_);
  places_.erase(&place);
  place.memory_.reset();
  open_ -= place.windows_ ? 1 : 0;
  Serve();
}

}  // namespace nam::computeserver
