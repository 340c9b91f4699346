#include "fabric/shm/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status_macros.h"

namespace nam::fabric::shm {
namespace {

constexpr size_t kBacklogMax = 256;

/// Waits against the clock of deadlines.
template <typename Predicate>
bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Deadline deadline,
               Predicate predicate) {
  if (deadline.ns == Deadline::Never().ns) {
    changed.wait(lock, predicate);
    return true;
  }
  const std::chrono::nanoseconds since_boot(std::max<int64_t>(deadline.ns, 0));
  return changed.wait_until(lock, std::chrono::steady_clock::time_point(since_boot), predicate);
}

}  // namespace

void Link::set_bell(Doorbell* bell) {
  std::lock_guard lock(mutex_);
  bell_ = bell;
  if (lost()) Ring(*bell);
}

absl::StatusOr<Packet> Link::RequestRegion(uint32_t rkey, Deadline deadline) {
  std::unique_lock lock(mutex_);
  reply_.reset();
  NAM_RETURN_IF_ERROR(SendMessage(socket(), {.type = MessageType::kRegionRequest, .rkey = rkey}));
  const bool answered = WaitUntil(changed_, lock, deadline, [&] {
    return lost() || (reply_.has_value() && reply_->message.rkey == rkey);
  });
  if (!answered) return absl::DeadlineExceededError("the peer does not answer");
  if (!reply_.has_value()) return absl::UnavailableError("the peer closed the connection");
  if (reply_->message.code != 0) return RefusalStatus(reply_->message);
  return std::move(*reply_);
}

void Link::Shutdown() {
  shutdown(socket(), SHUT_RDWR);
}

void Link::MarkLost() {
  std::lock_guard lock(mutex_);
  lost_.store(true, std::memory_order_release);
  changed_.notify_all();
  if (bell_ != nullptr) Ring(*bell_);
}

void Link::DeliverReply(Packet reply) {
  std::lock_guard lock(mutex_);
  reply_ = std::move(reply);
  changed_.notify_all();
}

bool Backlog::Push(std::shared_ptr<Link> link) {
  std::lock_guard lock(mutex_);
  if (closed_ || links_.size() >= kBacklogMax) return false;
  links_.push_back(std::move(link));
  changed_.notify_one();
  return true;
}

std::shared_ptr<Link> Backlog::Pop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!WaitUntil(changed_, lock, deadline, [this] { return !links_.empty(); })) return nullptr;
  std::shared_ptr<Link> link = std::move(links_.front());
  links_.pop_front();
  return link;
}

void Backlog::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  links_.clear();
}

}  // namespace nam::fabric::shm
