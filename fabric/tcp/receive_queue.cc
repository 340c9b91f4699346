#include "fabric/tcp/receive_queue.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "fabric/request_rules.h"

namespace nam::fabric::tcp {

ReceiveQueue::ReceiveQueue(uint64_t queue_pair, uint32_t depth, std::shared_ptr<Doorbell> doorbell)
    : queue_pair_(queue_pair), depth_(depth), doorbell_(std::move(doorbell)) {}

absl::Status ReceiveQueue::Post(std::span<const ReceiveRequest> batch) {
  bool resume = false;
  {
    const MutexLock lock(mutex_);
    NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), outstanding_, depth_));
    outstanding_ += batch.size();
    for (const ReceiveRequest& request : batch) {
      if (failed_) {
        done_.push_back({.id = request.id,
                         .queue_pair = queue_pair_,
                         .status = CompletionStatus::kFlushed,
                         .opcode = Opcode::kReceive});
        news_ = true;
      } else {
        posted_.push_back({request.id, request.into});
      }
    }
    resume = starving_ && !posted_.empty();
    if (resume) starving_ = false;
  }
  if (resume) resume_();
  return absl::OkStatus();
}

size_t ReceiveQueue::Pop(std::span<Completion> completions) {
  if (!news_) return 0;
  const MutexLock lock(mutex_);
  const size_t taken = std::min(completions.size(), done_.size());
  for (size_t i = 0; i < taken; ++i) {
    completions[i] = done_.front();
    done_.pop_front();
  }
  outstanding_ -= taken;
  if (done_.empty()) news_ = false;
  return taken;
}

void ReceiveQueue::Fail(CompletionStatus pending) {
  const MutexLock lock(mutex_);
  failed_ = true;
  for (const Entry& entry : posted_) {
    done_.push_back(
        {.id = entry.id, .queue_pair = queue_pair_, .status = pending, .opcode = Opcode::kReceive});
  }
  posted_.clear();
  news_ = !done_.empty();
}

std::optional<ReceiveQueue::Entry> ReceiveQueue::Match() {
  const MutexLock lock(mutex_);
  if (posted_.empty()) {
    starving_ = true;
    return std::nullopt;
  }
  const Entry entry = posted_.front();
  posted_.pop_front();
  return entry;
}

void ReceiveQueue::Complete(const Completion& completion) {
  {
    const MutexLock lock(mutex_);
    done_.push_back(completion);
    done_.back().queue_pair = queue_pair_;
    news_ = true;
  }
  doorbell_->Ring();
}

void ReceiveQueue::OnPeerLost() {
  {
    // Under the lock, so that Pop does not clear `news_` over it.
    const MutexLock lock(mutex_);
    peer_lost_.store(true, std::memory_order_release);
    news_ = true;
  }
  doorbell_->Ring();
}

}  // namespace nam::fabric::tcp
