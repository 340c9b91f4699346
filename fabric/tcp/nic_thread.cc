#include "fabric/tcp/nic_thread.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "fabric/net/socket.h"
#include "fabric/tcp/busy_poll.h"
#include "fabric/threads.h"

namespace nam::fabric::tcp {
namespace {

constexpr uint64_t kDoorbellId = 0;
constexpr int kServedEventsMax = 64;
// Connections per thread, each with up to 1,152 KiB of buffers.
constexpr size_t kServedMax = 8192;

uint32_t InterestOf(ServedConnection::Want want) {
  switch (want) {
    case ServedConnection::Want::kInput:
      return EPOLLIN;
    case ServedConnection::Want::kOutput:
      return EPOLLOUT;
    // Not for input: while a message waits, only the peer's end matters.
    case ServedConnection::Want::kReceive:
      return EPOLLRDHUP;
    case ServedConnection::Want::kTurn:
    case ServedConnection::Want::kClose:
      return 0;
  }
  return 0;
}

}  // namespace

NicThread::NicThread(const Regions& regions, int64_t peer_timeout_us, int index)
    : regions_(regions), peer_timeout_us_(peer_timeout_us), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  NAM_CHECK(epoll_.valid() && doorbell_.fd() >= 0, "no file descriptors left: raise `ulimit -n`");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kDoorbellId}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, doorbell_.fd(), &event) == 0);
  thread_ = StartRealThread(absl::StrCat("nam-nic-", index), [this] { Run(); });
}

NicThread::~NicThread() {
  Stop();
}

void NicThread::Stop() {
  {
    // In one step, so that no command is enqueued after the thread's end and awaited in vain.
    const MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    commands_.push_back([this] { running_ = false; });
  }
  doorbell_.Ring();
  thread_.reset();
}

bool NicThread::Enqueue(std::function<void()> command) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    commands_.push_back(std::move(command));
  }
  doorbell_.Ring();
  return true;
}

bool NicThread::EnqueueAndWait(std::function<void()> command) {
  // Shared, so that the promise outlives set_value even if the waiter is quick.
  const auto done = std::make_shared<std::promise<void>>();
  if (!Enqueue([done, &command] {
        command();
        done->set_value();
      })) {
    return false;
  }
  done->get_future().wait();
  return true;
}

bool NicThread::Add(uint64_t id, net::Stream stream, Terms terms) {
  // std::function must be copyable, so the connection travels shared.
  auto connection = std::make_shared<std::unique_ptr<ServedConnection>>(std::make_unique<ServedConnection>(
      std::move(stream), regions_, std::move(terms.receives), terms.rights));
  return Enqueue([this, id, connection, held = std::move(terms.held)] {
    Served& served = served_[id];
    served.held = held;
    served.connection = std::move(*connection);
    served.last_progress_ns = RealClock().NowNs();
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    served.interest = EPOLLIN;
    const bool watched = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, served.connection->fd(), &event) == 0;
    if (!watched || served_.size() > kServedMax) Close(id);
  });
}

void NicThread::Resume(uint64_t id) {
  Enqueue([this, id] {
    const auto found = served_.find(id);
    if (found != served_.end()) Turn(id, found->second);
  });
}

void NicThread::Remove(uint64_t id, CompletionStatus status) {
  EnqueueAndWait([this, id, status] {
    const auto found = served_.find(id);
    if (found == served_.end()) return;
    found->second.connection->Abort(status);
    served_.erase(found);
  });
}

void NicThread::ReleaseRegion(uint32_t key) {
  EnqueueAndWait([this, key] {
    for (auto& [id, served] : served_) {
      if (served.connection->ReleaseRegion(key)) turns_.push_back(id);
    }
  });
}

void NicThread::Run() {
  const int64_t sweep_ns = peer_timeout_us_ * 1000 / 2;
  int64_t next_sweep_ns = RealClock().NowNs() + sweep_ns;
  std::array<epoll_event, kServedEventsMax> events;
  BusyPoll looks;
  while (running_) {
    doorbell_.Arm();
    int64_t timeout_ms = std::max<int64_t>(0, (next_sweep_ns - RealClock().NowNs()) / 1'000'000 + 1);
    if (served_.empty()) timeout_ms = -1;
    if (!turns_.empty() || HasCommands() || looks.Again()) timeout_ms = 0;
    const int count = epoll_wait(epoll_.get(), events.data(), kServedEventsMax,
                                 static_cast<int>(std::min<int64_t>(timeout_ms, 60'000)));
    doorbell_.Disarm();
    NAM_CHECK(count >= 0 || errno == EINTR);
    if (count > 0) looks.Restart();
    for (int i = 0; i < count; ++i) OnEvent(events[i].data.u64, events[i].events);
    RunCommands();
    for (const uint64_t id : std::exchange(turns_, {})) {
      const auto found = served_.find(id);
      if (found != served_.end()) Turn(id, found->second);
    }
    const int64_t now_ns = RealClock().NowNs();
    if (now_ns >= next_sweep_ns) {
      Sweep(now_ns);
      next_sweep_ns = now_ns + sweep_ns;
    }
  }
  while (!served_.empty()) Close(served_.begin()->first);
}

bool NicThread::HasCommands() {
  const MutexLock lock(mutex_);
  return !commands_.empty();
}

void NicThread::RunCommands() {
  std::vector<std::function<void()>> commands;
  {
    const MutexLock lock(mutex_);
    commands.swap(commands_);
  }
  for (const auto& command : commands) command();
}

void NicThread::OnEvent(uint64_t id, uint32_t events) {
  if (id == kDoorbellId) {
    doorbell_.Clear();
    return;
  }
  const auto found = served_.find(id);
  if (found == served_.end()) return;
  const bool gone = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  // While input is left to read, executing it finds the end.
  if (gone && found->second.connection->want() == ServedConnection::Want::kReceive) {
    Close(id);
  } else {
    Turn(id, found->second);
  }
}

void NicThread::Turn(uint64_t id, Served& served) {
  const ServedConnection::Want want = served.connection->Serve();
  if (want == ServedConnection::Want::kClose) {
    Close(id);
    return;
  }
  if (want == ServedConnection::Want::kTurn) turns_.push_back(id);
  SetInterest(id, served, InterestOf(want));
}

void NicThread::Close(uint64_t id) {
  const auto found = served_.find(id);
  found->second.connection->Abort(CompletionStatus::kPeerLost);
  found->second.connection->NotifyPeerLost();
  served_.erase(found);
}

void NicThread::SetInterest(uint64_t id, Served& served, uint32_t interest) {
  if (served.interest == interest) return;
  served.interest = interest;
  epoll_event event{.events = interest, .data = {.u64 = id}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, served.connection->fd(), &event) == 0);
}

void NicThread::Sweep(int64_t now_ns) {
  std::vector<uint64_t> lost;
  for (auto& [id, served] : served_) {
    if (served.connection->bytes_moved() != served.bytes_moved) {
      served.bytes_moved = served.connection->bytes_moved();
      served.last_progress_ns = now_ns;
    } else if (now_ns - served.last_progress_ns > peer_timeout_us_ * 1000 &&
               net::PeerHostVanished(served.connection->fd(), peer_timeout_us_)) {
      lost.push_back(id);
    }
  }
  for (const uint64_t id : lost) Close(id);
}

}  // namespace nam::fabric::tcp
