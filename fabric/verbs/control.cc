#include "fabric/verbs/control.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"
#include "fabric/net/socket.h"
#include "fabric/threads.h"

namespace nam::fabric::verbs {

void MoveToError(ibv_qp* queue_pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // Fails only if the device is gone; then everything completes with errors anyway.
  ibv_modify_qp(queue_pair, &attributes, IBV_QP_STATE);
}

ControlChannel::ControlChannel(UniqueFd fd, const Registry& registry, ibv_qp* queue_pair)
    : fd_(std::move(fd)), registry_(registry), queue_pair_(queue_pair) {}

ControlChannel::ControlChannel(UniqueFd fd, const Registry& registry, QueuePairHandle served,
                               std::shared_ptr<void> held)
    : held_(std::move(held)),
      fd_(std::move(fd)),
      registry_(registry),
      queue_pair_(served.get()),
      served_(std::move(served)) {}

ControlChannel::~ControlChannel() {
  shutdown(fd_.get(), SHUT_RDWR);
}

absl::StatusOr<ControlChannel::RemoteRegion> ControlChannel::AskRegion(uint32_t key, Deadline deadline) {
  const auto answer = Ask({.kind = FrameKind::kAskRegion, .key = key}, FrameKind::kRegion, deadline);
  if (!answer.ok()) return answer.status();
  if (answer->status != CompletionStatus::kOk) return absl::NotFoundError("the peer has no such region");
  return RemoteRegion{answer->nic_key, answer->base, answer->bytes, answer->access};
}

absl::StatusOr<bool> ControlChannel::AskWhetherReady(Deadline deadline) {
  const auto answer = Ask({.kind = FrameKind::kAskState}, FrameKind::kState, deadline);
  if (!answer.ok()) return answer.status();
  return answer->status == CompletionStatus::kOk;
}

absl::StatusOr<Frame> ControlChannel::Ask(const Frame& question, FrameKind answer, Deadline deadline) {
  const MutexLock lock(mutex_);
  answer_.reset();
  if (over_ || !Send(question)) return absl::UnavailableError("the peer is gone");
  bool in_time = true;
  while (!over_ && !answer_.has_value()) {
    if (!in_time) return absl::UnavailableError("the peer does not answer");
    in_time = answered_.WaitUntil(mutex_, deadline);
  }
  if (!answer_ || answer_->kind != answer || answer_->key != question.key) {
    return absl::UnavailableError("the peer is gone");
  }
  return *answer_;
}

void ControlChannel::TellEnded(CompletionStatus status) {
  const MutexLock lock(mutex_);
  if (!over_) Send({.kind = FrameKind::kEnded, .status = status});
}

void ControlChannel::Close() {
  const MutexLock lock(mutex_);
  queue_pair_ = nullptr;
  over_ = true;
  shutdown(fd_.get(), SHUT_RDWR);
}

bool ControlChannel::Send(const Frame& frame) {
  iovec part{const_cast<Frame*>(&frame), sizeof(frame)};
  // Few frames are in flight at a time. A peer that lets a socket buffer of them pile up is broken.
  return net::SendSome(fd_.get(), {&part, 1}).bytes == sizeof(frame);
}

bool ControlChannel::OnInput() {
  while (true) {
    iovec part{input_.data() + input_bytes_, input_.size() - input_bytes_};
    const net::IoResult received = net::ReceiveSome(fd_.get(), {&part, 1});
    if (received.lost) return false;
    if (received.bytes == 0) return true;
    input_bytes_ += received.bytes;
    if (input_bytes_ < input_.size()) continue;
    input_bytes_ = 0;
    const auto frame = DecodeFrame(input_);
    if (!frame || !Handle(*frame)) return false;
  }
}

bool ControlChannel::Handle(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kReady:
      return true;
    case FrameKind::kEnded:
      OnLost(frame.status == CompletionStatus::kOk ? CompletionStatus::kPeerLost : frame.status);
      EndServed();
      return true;
    case FrameKind::kAskRegion:
    case FrameKind::kAskState: {
      const MutexLock lock(mutex_);
      return Send(frame.kind == FrameKind::kAskState ? DescribeState() : DescribeRegion(frame.key));
    }
    case FrameKind::kRegion:
    case FrameKind::kState: {
      const MutexLock lock(mutex_);
      answer_ = frame;
      answered_.NotifyAll();
      return true;
    }
  }
  return false;
}

Frame ControlChannel::DescribeRegion(uint32_t key) const {
  Frame frame{.kind = FrameKind::kRegion, .key = key};
  const auto entry = registry_.Find(key);
  if (!entry) {
    frame.status = CompletionStatus::kRemoteAccessError;
    return frame;
  }
  frame.nic_key = entry->nic_rkey;
  frame.access = entry->access;
  frame.base = reinterpret_cast<uintptr_t>(entry->data);
  frame.bytes = entry->bytes;
  return frame;
}

Frame ControlChannel::DescribeState() {
  Frame frame{.kind = FrameKind::kState, .status = CompletionStatus::kPeerLost};
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  if (queue_pair_ != nullptr && ibv_query_qp(queue_pair_, &attributes, IBV_QP_STATE, &initial) == 0 &&
      attributes.qp_state == IBV_QPS_RTS) {
    frame.status = CompletionStatus::kOk;
  }
  return frame;
}

void ControlChannel::OnLost(CompletionStatus reason) {
  const MutexLock lock(mutex_);
  if (!lost_) reason_.store(reason, std::memory_order_release);
  // Before the queue pair moves: a thread that posts without seeing it has posted early enough to be flushed.
  lost_.store(true, std::memory_order_seq_cst);
  over_ = true;
  answered_.NotifyAll();
  if (queue_pair_ != nullptr) MoveToError(queue_pair_);
}

// In the error state a NIC accepts no more requests; once the queue pair is destroyed, it has also finished
// those accepted before.
void ControlChannel::EndServed() {
  const MutexLock lock(mutex_);
  if (served_ == nullptr) return;
  queue_pair_ = nullptr;
  served_.reset();
}

void ControlChannel::Release() {
  EndServed();
  held_.reset();
}

void ControlChannel::Fence() {
  {
    const MutexLock lock(mutex_);
    if (queue_pair_ != nullptr) MoveToError(queue_pair_);
  }
  EndServed();
}

ControlThread::ControlThread()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  NAM_CHECK(epoll_.valid() && stop_.valid(), "no file descriptors left: raise `ulimit -n`");
  epoll_event event{.events = EPOLLIN, .data = {.fd = stop_.get()}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event) == 0);
  thread_ = StartRealThread("nam-verbs", [this] { Run(); });
}

ControlThread::~ControlThread() {
  Stop();
}

void ControlThread::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  thread_.reset();
  decltype(channels_) channels;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    channels.swap(channels_);
  }
  for (const auto& [fd, channel] : channels) {
    channel->OnLost(CompletionStatus::kPeerLost);
    channel->Release();
  }
}

absl::Status ControlThread::Add(std::shared_ptr<ControlChannel> channel) {
  const int fd = channel->fd();
  const MutexLock lock(mutex_);
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (stopped_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ResourceExhaustedError("cannot watch another socket: raise fs.epoll.max_user_watches");
  }
  channels_[fd] = std::move(channel);
  return absl::OkStatus();
}

void ControlThread::Remove(const ControlChannel& channel) {
  const MutexLock lock(mutex_);
  const auto found = channels_.find(channel.fd());
  if (found == channels_.end() || found->second.get() != &channel) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel.fd(), nullptr);
  channels_.erase(found);
}

void ControlThread::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    NAM_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == stop_.get()) return;
      OnEvent(events[i].data.fd);
    }
  }
}

void ControlThread::OnEvent(int fd) {
  std::shared_ptr<ControlChannel> channel;
  {
    const MutexLock lock(mutex_);
    // Absent if its queue pair was destroyed meanwhile.
    if (const auto found = channels_.find(fd); found != channels_.end()) channel = found->second;
  }
  if (channel == nullptr || channel->OnInput()) return;
  channel->OnLost(CompletionStatus::kPeerLost);
  Remove(*channel);
  channel->Release();
}

}  // namespace nam::fabric::verbs
