#include "fabric/tcp/listener.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/tcp/authentication.h"
#include "fabric/tcp/completion_queue.h"
#include "fabric/tcp/queue_pair.h"
#include "fabric/threads.h"

namespace nam::fabric::tcp {
namespace {

constexpr size_t kUnauthenticatedMax = 64;
constexpr size_t kUnacceptedMax = 128;
constexpr int kBacklog = 256;
constexpr uint64_t kDoorbellId = 0;
constexpr uint64_t kSocketId = 1;
// Without file descriptors, accept fails until somebody closes one.
constexpr int64_t kAcceptAgainNs = 100'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> TcpListener::Create(std::shared_ptr<Core> core,
                                                              const ListenOptions& options) {
  NAM_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(options.address));
  NAM_ASSIGN_OR_RETURN(UniqueFd socket, ListenOn(endpoint, kBacklog));
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string address = absl::StrFormat(v6 ? "[%s]:%d" : "%s:%d", endpoint.host, BoundPort(socket.get()));
  std::unique_ptr<TcpListener> listener(
      new TcpListener(std::move(core), options.passive, std::move(socket), std::move(address)));
  if (!listener->epoll_.valid() || listener->doorbell_.fd() < 0) {
    return absl::ResourceExhaustedError("no file descriptors left for a listener: raise `ulimit -n`");
  }
  listener->Start();
  return listener;
}

TcpListener::TcpListener(std::shared_ptr<Core> core, bool passive, UniqueFd socket, std::string address)
    : core_(std::move(core)),
      passive_(passive),
      socket_(std::move(socket)),
      address_(std::move(address)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void TcpListener::Start() {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kDoorbellId}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, doorbell_.fd(), &event) == 0);
  event.data.u64 = kSocketId;
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) == 0);
  doorbell_.Arm();
  thread_ = StartRealThread("nam-listen", [this] { Run(); });
}

TcpListener::~TcpListener() {
  stopping_ = true;
  doorbell_.Ring();
  thread_.reset();
}

void TcpListener::Run() {
  std::array<epoll_event, 64> events;
  while (!stopping_) {
    const int64_t next_ns = Expire();
    const int64_t left_ms = std::clamp<int64_t>((next_ns - RealClock().NowNs()) / 1'000'000 + 1, 0, 60'000);
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(left_ms));
    NAM_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kSocketId) AcceptSockets();
      if (events[i].data.u64 > kSocketId) Advance(events[i].data.u64);
    }
  }
}

void TcpListener::AcceptSockets() {
  while (true) {
    UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      accept_again_ns_ = RealClock().NowNs() + kAcceptAgainNs;
      epoll_event event{.events = 0, .data = {.u64 = kSocketId}};
      NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event) == 0);
      return;
    }
    if (handshakes_.size() >= kUnauthenticatedMax) handshakes_.erase(handshakes_.begin());
    const int64_t timeout_us = core_->options().peer_timeout_us;
    ConfigurePeerSocket(fd.get(), timeout_us);
    const uint64_t id = next_handshake_++;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) continue;
    handshakes_.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                        std::forward_as_tuple(std::move(fd), RealClock().After(timeout_us).ns));
  }
}

void TcpListener::Advance(uint64_t id) {
  const auto found = handshakes_.find(id);
  if (found == handshakes_.end()) return;
  const auto outcome = found->second.Advance(core_->options().secret);
  if (outcome == ServerHandshake::Outcome::kAgain) return;
  if (outcome == ServerHandshake::Outcome::kAuthenticated) Admit(found->second);
  handshakes_.erase(found);
}

ServerVerdict TcpListener::Judge(const ClientHello& hello) {
  ServerVerdict verdict{.mode = passive_ ? ListenMode::kPassive : ListenMode::kPaired, .token = hello.token};
  if (hello.role == Role::kReverse) {
    if (!unpaired_.contains(hello.token)) verdict.status = HandshakeStatus::kUnknownToken;
  } else if (!passive_) {
    if (unpaired_.size() + WaitingCount() >= kUnacceptedMax) verdict.status = HandshakeStatus::kBusy;
    FillRandom({reinterpret_cast<uint8_t*>(&verdict.token), sizeof(verdict.token)});
  }
  return verdict;
}

void TcpListener::Admit(ServerHandshake& handshake) {
  const ServerVerdict verdict = Judge(handshake.hello());
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, handshake.fd(), nullptr) == 0);
  if (!handshake.Conclude(core_->options().secret, verdict) || verdict.status != HandshakeStatus::kOk) return;
  if (passive_) {
    core_->AssignNic().Add(core_->NextId(), handshake.TakeFd(), nullptr);
  } else if (handshake.hello().role == Role::kForward) {
    const int64_t deadline_ns = RealClock().After(core_->options().peer_timeout_us).ns;
    unpaired_[verdict.token] = {handshake.TakeFd(), deadline_ns};
  } else {
    auto pair = unpaired_.extract(verdict.token);
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(pair.mapped().forward), handshake.TakeFd()});
    arrived_.notify_one();
  }
}

int64_t TcpListener::Expire() {
  const int64_t now_ns = RealClock().NowNs();
  int64_t next_ns = now_ns + 60'000'000'000;
  while (!handshakes_.empty() && handshakes_.begin()->second.deadline_ns() <= now_ns) {
    handshakes_.erase(handshakes_.begin());
  }
  if (!handshakes_.empty()) next_ns = std::min(next_ns, handshakes_.begin()->second.deadline_ns());
  std::erase_if(unpaired_, [&](const auto& entry) { return entry.second.deadline_ns <= now_ns; });
  for (const auto& [token, unpaired] : unpaired_) next_ns = std::min(next_ns, unpaired.deadline_ns);
  if (accept_again_ns_ != 0 && accept_again_ns_ <= now_ns) {
    accept_again_ns_ = 0;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kSocketId}};
    NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event) == 0);
  }
  if (accept_again_ns_ != 0) next_ns = std::min(next_ns, accept_again_ns_);
  return next_ns;
}

size_t TcpListener::WaitingCount() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

absl::StatusOr<std::unique_ptr<QueuePair>> TcpListener::Accept(CompletionQueue& completions,
                                                               const QueuePairOptions& options,
                                                               Deadline deadline) {
  if (passive_) {
    return absl::FailedPreconditionError(
        "a passive listener is served by the fabric: there is nothing to accept");
  }
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
  auto* queue = dynamic_cast<TcpCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(queue->CheckRoom(options));
  std::unique_lock lock(mutex_);
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
  if (!arrived_.wait_until(lock, until, [&] { return !waiting_.empty(); })) {
    return absl::DeadlineExceededError(absl::StrFormat("nobody connected to %s in time", address_));
  }
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  std::string peer = PeerName(next.reverse.get());
  return TcpQueuePair::Create(core_, *queue, options, std::move(next.reverse), std::move(next.forward),
                              std::move(peer));
}

}  // namespace nam::fabric::tcp
