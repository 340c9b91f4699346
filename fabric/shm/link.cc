#include "fabric/shm/link.h"

#include <sys/socket.h>

#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"

namespace nam::fabric::shm {
namespace {

constexpr size_t kBacklogMax = 256;

}  // namespace

void Link::set_bell(Doorbell* bell) {
  const MutexLock lock(mutex_);
  bell_ = bell;
  if (lost()) Ring(*bell);
}

absl::StatusOr<Packet> Link::RequestRegion(uint32_t rkey, Deadline deadline) {
  const MutexLock lock(mutex_);
  reply_.reset();
  NAM_RETURN_IF_ERROR(SendMessage(socket(), {.type = MessageType::kRegionRequest, .rkey = rkey}));
  bool in_time = true;
  while (!lost() && !(reply_.has_value() && reply_->message.rkey == rkey)) {
    if (!in_time) return absl::DeadlineExceededError("the peer does not answer");
    in_time = changed_.WaitUntil(mutex_, deadline);
  }
  if (!reply_.has_value()) return absl::UnavailableError("the peer closed the connection");
  if (reply_->message.code != 0) return RefusalStatus(reply_->message);
  return std::move(*reply_);
}

void Link::Shutdown() {
  shutdown(socket(), SHUT_RDWR);
}

void Link::MarkLost() {
  const MutexLock lock(mutex_);
  lost_.store(true, std::memory_order_release);
  changed_.NotifyAll();
  if (bell_ != nullptr) Ring(*bell_);
}

void Link::DeliverReply(Packet reply) {
  const MutexLock lock(mutex_);
  reply_ = std::move(reply);
  changed_.NotifyAll();
}

bool Backlog::Push(std::shared_ptr<Link> link) {
  const MutexLock lock(mutex_);
  if (closed_ || links_.size() >= kBacklogMax) return false;
  links_.push_back(std::move(link));
  changed_.NotifyOne();
  return true;
}

std::shared_ptr<Link> Backlog::Pop(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (links_.empty() && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (links_.empty()) return nullptr;
  std::shared_ptr<Link> link = std::move(links_.front());
  links_.pop_front();
  return link;
}

void Backlog::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  links_.clear();
}

}  // namespace nam::fabric::shm
