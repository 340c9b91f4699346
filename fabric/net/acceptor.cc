#include "fabric/net/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"
#include "fabric/strangers.h"
#include "fabric/threads.h"

namespace nam::fabric::net {
namespace {

constexpr int kBacklog = 1024;
// Bounds new connections between two turns of the existing ones.
constexpr int kAcceptsPerTurn = 16;
constexpr uint64_t kStopId = 0;
constexpr uint64_t kSocketId = 1;
constexpr uint64_t kDecisionsId = 2;
constexpr uint64_t kFirstArrivalId = 3;
// Pause after running out of descriptors: accept fails until one is closed.
constexpr int64_t kAcceptAgainNs = 100'000'000;

}  // namespace

uint64_t SourceOf(const sockaddr_storage& peer) {
  uint64_t source = 0;
  if (peer.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
      std::memcpy(&source, &address.s6_addr[12], sizeof(in_addr));
    } else {
      std::memcpy(&source, &address, sizeof(source));
    }
  } else if (peer.ss_family == AF_INET) {
    source = reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr;
  }
  return source;
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address,
                                                           const AcceptorOptions& options) {
  NAM_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(address));
  NAM_ASSIGN_OR_RETURN(UniqueFd socket, ListenOn(endpoint, kBacklog));
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string bound = v6 ? absl::StrFormat("[%s]:%d", endpoint.host, BoundPort(socket.get()))
                         : absl::StrFormat("%s:%d", endpoint.host, BoundPort(socket.get()));
  std::unique_ptr<Acceptor> acceptor(new Acceptor(std::move(socket), std::move(bound), options));
  if (!acceptor->epoll_.valid() || !acceptor->stop_.valid() || acceptor->decisions_->fd() < 0) {
    return absl::ResourceExhaustedError("no file descriptors left for a listener: raise `ulimit -n`");
  }
  return acceptor;
}

Acceptor::Acceptor(UniqueFd socket, std::string address, const AcceptorOptions& options)
    : options_(options),
      arrivals_max_(StrangersMax()),
      socket_(std::move(socket)),
      address_(std::move(address)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      decisions_(std::make_shared<Decisions>()),
      next_arrival_(kFirstArrivalId) {}

void Acceptor::Start(Door& door) {
  door_ = &door;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kStopId}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event) == 0);
  event.data.u64 = kDecisionsId;
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, decisions_->fd(), &event) == 0);
  event.data.u64 = kSocketId;
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) == 0);
  thread_ = StartRealThread("nam-listen", [this] { Run(); });
}

Acceptor::~Acceptor() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  thread_.reset();
}

void Acceptor::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int64_t next_ns = Expire();
    const int64_t left_ms = std::clamp<int64_t>((next_ns - RealClock().NowNs()) / 1'000'000 + 1, 0, 60'000);
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(left_ms));
    NAM_CHECK(count >= 0 || errno == EINTR);
    bool more = false;
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStopId) return;
      if (id == kSocketId) {
        more = true;
      } else if (id == kDecisionsId) {
        ApplyDecisions();
      } else if (const auto found = arrivals_.find(id); found != arrivals_.end()) {
        if (Advance(id, found->second) == Step::kOver) arrivals_.erase(found);
      }
    }
    // Last, and a few at a time, so that existing arrivals always progress.
    if (more) AcceptSockets();
  }
}

void Acceptor::WatchSocket(bool on) {
  epoll_event event{.events = on ? EPOLLIN : 0u, .data = {.u64 = kSocketId}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event) == 0);
}

void Acceptor::AcceptSockets() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    UniqueFd fd(
        accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      Admit(std::move(fd), SourceOf(peer));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (MakeRoom()) continue;
    accept_again_ns_ = RealClock().NowNs() + kAcceptAgainNs;
    WatchSocket(false);
    return;
  }
}

void Acceptor::Admit(UniqueFd fd, uint64_t source) {
  if (arrivals_.size() >= arrivals_max_ && !MakeRoom()) return;  // closes the newcomer
  ConfigurePeerSocket(fd.get(), options_.peer_timeout_us);
  const uint64_t id = next_arrival_++;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) return;
  arrivals_.try_emplace(id, std::move(fd), source, RealClock().After(options_.peer_timeout_us).ns,
                        options_.first_bytes);
}

bool Acceptor::MakeRoom() {
  std::vector<uint64_t> ids, sources;
  for (const auto& [id, arrival] : arrivals_) {
    if (arrival.welcome || arrival.asked) continue;  // they have proved the secret
    ids.push_back(id);
    sources.push_back(arrival.source);
  }
  if (ids.empty()) return false;
  arrivals_.erase(ids[ChooseLeaver(sources, RandomBits())]);
  return true;
}

void Acceptor::WatchArrival(uint64_t id, Arrival& arrival, bool on) {
  epoll_event event{.events = on ? EPOLLIN : 0u, .data = {.u64 = id}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, arrival.handshake.fd(), &event) == 0);
}

Acceptor::Step Acceptor::Advance(uint64_t id, Arrival& arrival) {
  if (arrival.asked) return Step::kOver;  // closed before the answer
  if (arrival.welcome) return ReadFirstBytes(arrival);
  const ServerHandshake::Outcome outcome = arrival.handshake.Advance(options_.credentials);
  if (outcome == ServerHandshake::Outcome::kAgain) return Step::kAgain;
  if (outcome == ServerHandshake::Outcome::kClose) return Step::kOver;
  arrival.verdict = door_->Judge(arrival.handshake.hello());
  return Meet(id, arrival);
}

Acceptor::Step Acceptor::Meet(uint64_t id, Arrival& arrival) {
  if (options_.admission == nullptr || arrival.verdict.status != HandshakeStatus::kOk)
    return Welcome(arrival);
  const MemberClaim claim = arrival.handshake.member(options_.credentials.secret);
  if (claim.id == MemberId()) {
    arrival.grant.rights = Access::kRead;
    return Welcome(arrival);
  }
  arrival.asked = true;
  WatchArrival(id, arrival, false);
  options_.admission->Ask(claim, [decisions = decisions_, id](Admission::Decision decision) {
    decisions->Add(id, std::move(decision));
  });
  return Step::kAgain;
}

void Acceptor::ApplyDecisions() {
  for (Decisions::Decided& decided : decisions_->Take()) {
    const auto found = arrivals_.find(decided.arrival);
    if (found == arrivals_.end()) continue;  // gone meanwhile
    Arrival& arrival = found->second;
    Admission::Decision& decision = decided.decision;
    if (decision.verdict == Verdict::kRefused) arrival.verdict.status = HandshakeStatus::kNoSuchMember;
    if (decision.verdict == Verdict::kUnknown) arrival.verdict.status = HandshakeStatus::kMemberUnknown;
    arrival.grant.place = std::move(decision.place);
    arrival.grant.key = decision.key;
    arrival.asked = false;
    WatchArrival(decided.arrival, arrival, true);
    if (Welcome(arrival) == Step::kOver) arrivals_.erase(found);
  }
}

Acceptor::Step Acceptor::Welcome(Arrival& arrival) {
  arrival.welcome = arrival.handshake.Conclude(options_.credentials.secret, arrival.verdict) &&
                    arrival.verdict.status == HandshakeStatus::kOk;
  return arrival.welcome ? ReadFirstBytes(arrival) : Step::kOver;
}

Acceptor::Step Acceptor::ReadFirstBytes(Arrival& arrival) {
  ServerHandshake& handshake = arrival.handshake;
  if (arrival.received_bytes < arrival.first.size()) {
    iovec part{arrival.first.data() + arrival.received_bytes, arrival.first.size() - arrival.received_bytes};
    const IoResult received = ReceiveSome(handshake.fd(), {&part, 1});
    if (received.lost) return Step::kOver;
    arrival.received_bytes += received.bytes;
    if (arrival.received_bytes < arrival.first.size()) return Step::kAgain;
  }
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, handshake.fd(), nullptr) == 0);
  door_->Admit(handshake.Take(options_.credentials, arrival.verdict), handshake.hello(),
               std::move(arrival.grant), arrival.first);
  return Step::kOver;
}

int64_t Acceptor::Expire() {
  const int64_t now_ns = RealClock().NowNs();
  int64_t next_ns = std::min(now_ns + 60'000'000'000, door_->Expire(now_ns));
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

}  // namespace nam::fabric::net
