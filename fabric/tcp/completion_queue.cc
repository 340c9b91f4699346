#include "fabric/tcp/completion_queue.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/tcp/busy_poll.h"
#include "fabric/tcp/datagram_queue_pair.h"
#include "fabric/tcp/queue_pair.h"

namespace nam::fabric::tcp {
namespace {

constexpr int kSocketEventsMax = 64;

int EpollWait(int epoll, std::span<epoll_event> events, int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int count = epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  // Before Linux 5.11.
  const int64_t timeout_ms = std::min<int64_t>(timeout_ns / 1'000'000 + 1, 60'000);
  return epoll_wait(epoll, events.data(), static_cast<int>(events.size()), static_cast<int>(timeout_ms));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpCompletionQueue>> TcpCompletionQueue::Create(uint32_t depth) {
  if (depth == 0) return absl::InvalidArgumentError("a completion queue of depth 0");
  std::unique_ptr<TcpCompletionQueue> queue(new TcpCompletionQueue(depth));
  if (!queue->epoll_.valid() || queue->doorbell_->fd() < 0) {
    return absl::ResourceExhaustedError("no file descriptors left for a completion queue: raise `ulimit -n`");
  }
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  NAM_CHECK(epoll_ctl(queue->epoll_.get(), EPOLL_CTL_ADD, queue->doorbell_->fd(), &event) == 0);
  return queue;
}

TcpCompletionQueue::TcpCompletionQueue(uint32_t depth)
    : places_(depth), epoll_(epoll_create1(EPOLL_CLOEXEC)), doorbell_(std::make_shared<Doorbell>()) {}

TcpCompletionQueue::~TcpCompletionQueue() {
  NAM_CHECK(attached_.empty() && datagrams_.empty(), "queue pairs go before their queue");
}

absl::Status TcpCompletionQueue::Attach(TcpQueuePair& queue_pair) {
  NAM_RETURN_IF_ERROR(CheckRoom(PlacesOf(queue_pair.options())));
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &queue_pair}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, queue_pair.fd(), &event) != 0) {
    return absl::ResourceExhaustedError("cannot watch another socket: raise fs.epoll.max_user_watches");
  }
  places_.Reserve(PlacesOf(queue_pair.options()));
  attached_.push_back({&queue_pair, EPOLLIN});
  return absl::OkStatus();
}

void TcpCompletionQueue::Unwatch(TcpQueuePair& queue_pair) {
  for (Attached& attached : attached_) {
    if (attached.queue_pair != &queue_pair || attached.interest == 0) continue;
    attached.interest = 0;
    NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, queue_pair.fd(), nullptr) == 0);
  }
}

void TcpCompletionQueue::Detach(TcpQueuePair& queue_pair) {
  Unwatch(queue_pair);
  const size_t before = attached_.size();
  std::erase_if(attached_, [&](const Attached& attached) { return attached.queue_pair == &queue_pair; });
  if (attached_.size() == before) return;
  places_.Release(PlacesOf(queue_pair.options()));
}

absl::Status TcpCompletionQueue::Attach(TcpDatagramQueuePair& queue_pair) {
  const DatagramOptions& options = queue_pair.options();
  NAM_RETURN_IF_ERROR(CheckRoom(PlacesOf(options)));
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &datagrams_}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, queue_pair.fd(), &event) != 0) {
    return absl::ResourceExhaustedError("cannot watch another socket: raise fs.epoll.max_user_watches");
  }
  places_.Reserve(PlacesOf(options));
  datagrams_.push_back(&queue_pair);
  return absl::OkStatus();
}

void TcpCompletionQueue::Detach(TcpDatagramQueuePair& queue_pair) {
  if (std::erase(datagrams_, &queue_pair) == 0) return;
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, queue_pair.fd(), nullptr) == 0);
  places_.Release(PlacesOf(queue_pair.options()));
}

size_t TcpCompletionQueue::Poll(std::span<Completion> completions) {
  if (const size_t taken = Pop(completions); taken > 0) return taken;
  Progress();
  return Pop(completions);
}

size_t TcpCompletionQueue::Pop(std::span<Completion> completions) {
  size_t taken = 0;
  const size_t first = next_++;
  const size_t all = attached_.size() + datagrams_.size();
  for (size_t i = 0; i < all && taken < completions.size(); ++i) {
    const size_t at = (first + i) % all;
    const std::span rest = completions.subspan(taken);
    taken += at < attached_.size() ? attached_[at].queue_pair->Pop(rest)
                                   : datagrams_[at - attached_.size()]->Pop(rest);
  }
  return taken;
}

void TcpCompletionQueue::Progress() {
  for (const Attached& attached : attached_) attached.queue_pair->Progress();
  for (TcpDatagramQueuePair* datagrams : datagrams_) datagrams->Progress();
}

size_t TcpCompletionQueue::Wait(std::span<Completion> completions, Deadline deadline) {
  while (true) {
    BusyPoll looks;
    looks.Restart();
    do {
      if (const size_t taken = Poll(completions); taken > 0) return taken;
      if (woken_.exchange(false) || completions.empty()) return 0;
      if (RealClock().Passed(deadline)) return 0;
    } while (looks.Again());
    doorbell_->Arm();
    // A later ring has its work seen here, or ends the sleep.
    bool news = woken_;
    int64_t until_ns = deadline.ns;
    for (const Attached& attached : attached_) {
      news = news || attached.queue_pair->HasNews();
      until_ns = std::min(until_ns, attached.queue_pair->check_at_ns());
    }
    if (!news) Sleep(until_ns);
    doorbell_->Disarm();
  }
}

void TcpCompletionQueue::Sleep(int64_t until_ns) {
  UpdateInterest();
  // At most an hour, because some kernels refuse timespecs in the far future.
  const int64_t timeout_ns = std::clamp<int64_t>(until_ns - RealClock().NowNs(), 0, 3'600'000'000'000);
  std::array<epoll_event, kSocketEventsMax> events;
  const int count = EpollWait(epoll_.get(), events, timeout_ns);
  NAM_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      doorbell_->Clear();
    } else if (events[i].data.ptr != &datagrams_) {  // the next Progress receives them
      static_cast<TcpQueuePair*>(events[i].data.ptr)->OnSocketEvent();
    }
  }
}

void TcpCompletionQueue::UpdateInterest() {
  for (Attached& attached : attached_) {
    if (attached.interest == 0) continue;
    const uint32_t wanted = EPOLLIN | (attached.queue_pair->wants_output() ? EPOLLOUT : 0u);
    if (wanted == attached.interest) continue;
    attached.interest = wanted;
    epoll_event event{.events = wanted, .data = {.ptr = attached.queue_pair}};
    NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, attached.queue_pair->fd(), &event) == 0);
  }
}

void TcpCompletionQueue::Wake() {
  woken_ = true;
  doorbell_->Ring();
}

}  // namespace nam::fabric::tcp
