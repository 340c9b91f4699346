#include "fabric/verbs/listener.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/tcp/socket.h"
#include "fabric/threads.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/queue_pair.h"

namespace nam::fabric::verbs {
namespace {

constexpr size_t kArrivalsMax = 64;
constexpr size_t kUnacceptedMax = 128;
constexpr int kBacklog = 256;
constexpr uint64_t kStopId = 0;
constexpr uint64_t kSocketId = 1;
// Without file descriptors, accept fails until somebody closes one.
constexpr int64_t kAcceptAgainNs = 100'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> VerbsListener::Create(std::shared_ptr<Core> core,
                                                                const ListenOptions& options) {
  NAM_ASSIGN_OR_RETURN(const tcp::Endpoint endpoint, tcp::ParseEndpoint(options.address));
  NAM_ASSIGN_OR_RETURN(UniqueFd socket, tcp::ListenOn(endpoint, kBacklog));
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string address =
      absl::StrFormat(v6 ? "[%s]:%d" : "%s:%d", endpoint.host, tcp::BoundPort(socket.get()));
  std::unique_ptr<VerbsListener> listener(
      new VerbsListener(std::move(core), options.passive, std::move(socket), std::move(address)));
  if (!listener->epoll_.valid() || !listener->stop_.valid()) {
    return absl::ResourceExhaustedError("no file descriptors left for a listener: raise `ulimit -n`");
  }
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kStopId}};
  NAM_CHECK(epoll_ctl(listener->epoll_.get(), EPOLL_CTL_ADD, listener->stop_.get(), &event) == 0);
  event.data.u64 = kSocketId;
  NAM_CHECK(epoll_ctl(listener->epoll_.get(), EPOLL_CTL_ADD, listener->socket_.get(), &event) == 0);
  listener->thread_ = StartRealThread("nam-listen", [raw = listener.get()] { raw->Run(); });
  return listener;
}

VerbsListener::VerbsListener(std::shared_ptr<Core> core, bool passive, UniqueFd socket, std::string address)
    : core_(std::move(core)),
      passive_(passive),
      socket_(std::move(socket)),
      address_(std::move(address)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

VerbsListener::~VerbsListener() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  thread_.reset();
}

void VerbsListener::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int64_t next_ns = Expire();
    const int64_t left_ms = std::clamp<int64_t>((next_ns - RealClock().NowNs()) / 1'000'000 + 1, 0, 60'000);
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(left_ms));
    NAM_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStopId) return;
      if (id == kSocketId) {
        AcceptSockets();
      } else if (const auto found = arrivals_.find(id); found != arrivals_.end()) {
        if (Advance(found->second) == Step::kOver) arrivals_.erase(found);
      }
    }
  }
}

void VerbsListener::WatchSocket(bool on) {
  epoll_event event{.events = on ? EPOLLIN : 0u, .data = {.u64 = kSocketId}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event) == 0);
}

void VerbsListener::AcceptSockets() {
  while (true) {
    UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      accept_again_ns_ = RealClock().NowNs() + kAcceptAgainNs;
      WatchSocket(false);
      return;
    }
    if (arrivals_.size() >= kArrivalsMax) arrivals_.erase(arrivals_.begin());
    const int64_t timeout_us = core_->options().peer_timeout_us;
    tcp::ConfigurePeerSocket(fd.get(), timeout_us);
    const uint64_t id = next_arrival_++;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) continue;
    arrivals_.try_emplace(id, std::move(fd), RealClock().After(timeout_us).ns);
  }
}

VerbsListener::Step VerbsListener::Advance(Arrival& arrival) {
  if (arrival.authenticated) return ReceiveOffer(arrival);
  const std::string& secret = core_->options().secret;
  switch (arrival.handshake.Advance(secret)) {
    case tcp::ServerHandshake::Outcome::kAgain:
      return Step::kAgain;
    case tcp::ServerHandshake::Outcome::kClose:
      return Step::kOver;
    case tcp::ServerHandshake::Outcome::kAuthenticated:
      break;
  }
  tcp::ServerVerdict verdict{.mode = passive_ ? tcp::ListenMode::kPassive : tcp::ListenMode::kPaired};
  if (const std::lock_guard lock(mutex_); waiting_.size() >= kUnacceptedMax) {
    verdict.status = tcp::HandshakeStatus::kBusy;
  }
  arrival.authenticated =
      arrival.handshake.Conclude(secret, verdict) && verdict.status == tcp::HandshakeStatus::kOk;
  return arrival.authenticated ? Step::kAgain : Step::kOver;
}

VerbsListener::Step VerbsListener::ReceiveOffer(Arrival& arrival) {
  iovec part{arrival.input.data() + arrival.input_bytes, arrival.input.size() - arrival.input_bytes};
  const tcp::IoResult received = tcp::ReceiveSome(arrival.handshake.fd(), {&part, 1});
  if (received.lost) return Step::kOver;
  arrival.input_bytes += received.bytes;
  if (arrival.input_bytes < arrival.input.size()) return Step::kAgain;
  const auto offer = DecodeOffer(arrival.input);
  if (!offer || offer->refused != 0) return Step::kOver;
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, arrival.handshake.fd(), nullptr) == 0);
  Admit(arrival.handshake.TakeFd(), *offer);
  return Step::kOver;
}

void VerbsListener::Admit(UniqueFd socket, const Offer& offer) {
  std::string peer = tcp::PeerName(socket.get());
  if (!passive_) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kUnacceptedMax) return;
    waiting_.push_back({std::move(socket), offer, std::move(peer)});
    arrived_.notify_one();
    return;
  }
  // A peer that cannot be served learns it by the refusal, and tries elsewhere or again.
  (void)Serve(std::move(socket), offer, peer);
}

absl::Status VerbsListener::Serve(UniqueFd socket, const Offer& offer, const std::string& peer) {
  const int fd = socket.get();
  const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
  auto made = CreateQueuePair(*core_, core_->idle_completions(), {.send = 1});
  absl::Status ready = made.status();
  if (ready.ok()) ready = BringUp(*core_, *made, offer, peer);
  if (!ready.ok()) {
    (void)SendOffer(fd, {.refused = 1}, soon);
    return ready;
  }
  const Offer answer = made->offer;
  const auto channel =
      std::make_shared<ControlChannel>(std::move(socket), core_->registry(), std::move(made->handle));
  // The answer first: from then on the control thread is the one that writes.
  NAM_RETURN_IF_ERROR(SendOffer(fd, answer, soon));
  return core_->control().Add(channel);
}

int64_t VerbsListener::Expire() {
  const int64_t now_ns = RealClock().NowNs();
  int64_t next_ns = now_ns + 60'000'000'000;
  while (!arrivals_.empty() && arrivals_.begin()->second.handshake.deadline_ns() <= now_ns) {
    arrivals_.erase(arrivals_.begin());
  }
  if (!arrivals_.empty()) next_ns = std::min(next_ns, arrivals_.begin()->second.handshake.deadline_ns());
  if (accept_again_ns_ != 0 && accept_again_ns_ <= now_ns) {
    accept_again_ns_ = 0;
    WatchSocket(true);
  }
  if (accept_again_ns_ != 0) next_ns = std::min(next_ns, accept_again_ns_);
  return next_ns;
}

absl::StatusOr<VerbsListener::Waiting> VerbsListener::TakeWaiting(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
  if (!arrived_.wait_until(lock, until, [&] { return !waiting_.empty(); })) {
    return absl::DeadlineExceededError(absl::StrFormat("nobody connected to %s in time", address_));
  }
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

absl::StatusOr<std::unique_ptr<QueuePair>> VerbsListener::Accept(CompletionQueue& completions,
                                                                 const QueuePairOptions& options,
                                                                 Deadline deadline) {
  if (passive_) {
    return absl::FailedPreconditionError(
        "a passive listener is served by the fabric: there is nothing to accept");
  }
  auto* queue = dynamic_cast<VerbsCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  while (true) {
    NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
    NAM_RETURN_IF_ERROR(queue->CheckRoom(uint64_t{options.send_depth} + options.receive_depth));
    NAM_ASSIGN_OR_RETURN(Waiting next, TakeWaiting(deadline));
    const int fd = next.socket.get();
    const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
    auto pair = VerbsQueuePair::Create(core_, *queue, options, std::move(next.peer));
    absl::Status ready = pair.status();
    if (ready.ok()) ready = (*pair)->BringUp(next.offer);
    if (!ready.ok()) {
      (void)SendOffer(fd, {.refused = 1}, soon);
      return ready;
    }
    // Who is gone meanwhile is not worth an error: the next one may wait.
    if (!SendOffer(fd, (*pair)->offer(), soon).ok() || !ReceiveReady(fd, soon).ok()) continue;
    NAM_RETURN_IF_ERROR((*pair)->Start(std::move(next.socket), false));
    return std::unique_ptr<QueuePair>(*std::move(pair));
  }
}

}  // namespace nam::fabric::verbs
