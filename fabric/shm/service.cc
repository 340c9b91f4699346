#include "fabric/shm/service.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/shm/socket.h"
#include "fabric/strangers.h"
#include "fabric/threads.h"

namespace nam::fabric::shm {
namespace {

constexpr int kEventsMax = 64;
constexpr int kAcceptsPerTurn = 16;
constexpr int kMessagesPerTurn = 16;
constexpr uint64_t kWakeId = 0;

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Start(const Identity& identity, int64_t timeout_us) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd spare(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll.valid() || !wake.valid() || !spare.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("fabric shm: %s; raise `ulimit -n`", std::strerror(errno)));
  }
  std::unique_ptr<Service> service(
      new Service(identity, timeout_us, std::move(epoll), std::move(wake), std::move(spare)));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeId}};
  NAM_CHECK(epoll_ctl(service->epoll_.get(), EPOLL_CTL_ADD, service->wake_.get(), &event) == 0);
  NAM_ASSIGN_OR_RETURN(service->thread_,
                       TryStartRealThread("nam-shm-service", [s = service.get()] { s->Run(); }));
  return service;
}

Service::Service(const Identity& identity, int64_t timeout_us, UniqueFd epoll, UniqueFd wake, UniqueFd spare)
    : identity_(identity),
      timeout_us_(timeout_us),
      handshakes_max_(StrangersMax()),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      spare_(std::move(spare)) {}

Service::~Service() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.reset();
}

void Service::AddBacklog(const std::shared_ptr<Backlog>& backlog) {
  Watch(backlog->socket().get(), {.backlog = backlog});
}

void Service::RemoveBacklog(const Backlog& backlog) {
  std::vector<std::shared_ptr<Link>> orphans;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, source] : sources_) {
      if (source.link != nullptr && source.link->listener_id == backlog.id) orphans.push_back(source.link);
    }
  }
  for (const auto& link : orphans) {
    Unwatch(link->id, link->socket());
    link->Shutdown();
  }
  Unwatch(backlog.id, backlog.socket().get());
}

void Service::AddLink(const std::shared_ptr<Link>& link) {
  Watch(link->socket(), {.link = link});
}

void Service::HandOver(Link& link) {
  const MutexLock lock(mutex_);
  link.listener_id = 0;
}

void Service::RemoveLink(const Link& link) {
  Unwatch(link.id, link.socket());
}

uint64_t Service::Watch(int descriptor, Source source) {
  const MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  if (source.link != nullptr) source.link->id = id;
  if (source.backlog != nullptr) source.backlog->id = id;
  sources_.emplace(id, std::move(source));
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = id}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll refuses a socket");
  return id;
}

void Service::Unwatch(uint64_t id, int descriptor) {
  Source removed;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  removed = std::move(found->second);
  sources_.erase(found);
}

Service::Source Service::Find(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = sources_.find(id);
  return found == sources_.end() ? Source{} : found->second;
}

void Service::Run() {
  std::array<epoll_event, kEventsMax> events;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsMax, NextTimeoutMs());
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    for (int i = 0; i < count; ++i) {
      // Not found: removed meanwhile by a destroyed queue pair or listener.
      const Source source = Find(events[i].data.u64);
      if (events[i].data.u64 == kWakeId) ApplyDecisions();
      if (source.link != nullptr) Read(source.link);
      if (source.backlog != nullptr) AcceptAll(source.backlog);
    }
    DropOverdue();
  }
}

void Service::AcceptAll(const std::shared_ptr<Backlog>& backlog) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd socket(accept4(backlog->socket().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno != EMFILE && errno != ENFILE) return;
      if (!MakeRoom()) ShedConnection(backlog->socket().get());
      continue;
    }
    auto link = std::make_shared<Link>(std::move(socket));
    const absl::StatusOr<pid_t> peer = CheckPeerUser(link->socket());
    if (!peer.ok()) {
      SendMessage(link->socket(), MakeRefusal(peer.status())).IgnoreError();
      continue;
    }
    link->source = static_cast<uint64_t>(*peer);
    link->listener_id = backlog->id;
    link->handshaking = true;
    link->handshake =
        std::make_unique<AcceptHandshake>(&identity_, backlog->passive(), backlog->admission() != nullptr);
    link->handshake_deadline = RealClock().After(timeout_us_);
    handshakes_.push_back(link);
    Watch(link->socket(), {.link = link});
    LimitHandshakes();
  }
}

void Service::LimitHandshakes() {
  if (handshakes_.size() <= handshakes_max_) return;
  if (HandshakesUnderWay().size() > handshakes_max_) MakeRoom();
}

// Returns owners, because another thread may drop the last reference to a link at any moment.
std::vector<std::shared_ptr<Link>> Service::HandshakesUnderWay() {
  std::vector<std::shared_ptr<Link>> links;
  std::erase_if(handshakes_, [&](const std::weak_ptr<Link>& weak) {
    auto link = weak.lock();
    if (link == nullptr || !link->handshaking) return true;
    links.push_back(std::move(link));
    return false;
  });
  return links;
}

/// False if there is no handshake to end.
bool Service::MakeRoom() {
  const std::vector<std::shared_ptr<Link>> links = HandshakesUnderWay();
  if (links.empty()) return false;
  std::vector<uint64_t> sources;
  for (const auto& link : links) sources.push_back(link->source);
  const size_t leaver = ChooseLeaver(sources, RandomBits());
  Drop(*links[leaver]);
  handshakes_.erase(handshakes_.begin() + static_cast<ptrdiff_t>(leaver));
  return true;
}

/// Out of descriptors: closes the connection, which would otherwise wake the thread forever.
void Service::ShedConnection(int listening_socket) {
  spare_.reset();
  UniqueFd(accept4(listening_socket, nullptr, nullptr, SOCK_CLOEXEC));
  spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void Service::Read(const std::shared_ptr<Link>& link) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    absl::StatusOr<Packet> packet = ReceiveMessage(link->socket());
    if (absl::IsNotFound(packet.status())) return;
    absl::Status status = packet.status();
    if (status.ok()) status = Handle(link, *packet);
    if (!status.ok()) {
      Refuse(*link, status);
      return;
    }
  }
}

/// Tells the peer why, in case it made an honest mistake; ignores whether it listens.
void Service::Refuse(Link& link, const absl::Status& why) {
  if (link.handshaking) SendMessage(link.socket(), MakeRefusal(why)).IgnoreError();
  Drop(link);
}

absl::Status Service::Handle(const std::shared_ptr<Link>& link, Packet& packet) {
  if (link->handshaking) {
    NAM_RETURN_IF_ERROR(link->handshake->Step(link->socket(), packet));
    if (link->handshake->awaits_judgement()) return Judge(link);
    return link->handshake->done() ? FinishHandshake(link) : absl::OkStatus();
  }
  switch (packet.message.type) {
    case MessageType::kRegionRequest:
      return AnswerRegionRequest(*link, packet.message.rkey);
    case MessageType::kRegionReply:
      link->DeliverReply(std::move(packet));
      return absl::OkStatus();
    case MessageType::kDatagramJoin:
    case MessageType::kDatagramSend:
      if (link->datagram_peer == nullptr) break;
      return identity_.datagrams->Answer(link->socket(), link->id, link->datagram_peer, packet);
    default:
      break;
  }
  return absl::InvalidArgumentError("the peer does not follow the protocol");
}

/// nullptr if the listener is gone.
std::shared_ptr<Backlog> Service::BacklogOf(const Link& link) {
  uint64_t listener_id;
  {
    const MutexLock lock(mutex_);
    listener_id = link.listener_id;
  }
  return Find(listener_id).backlog;
}

absl::Status Service::Judge(const std::shared_ptr<Link>& link) {
  const std::shared_ptr<Backlog> backlog = BacklogOf(*link);
  if (backlog == nullptr) return absl::UnavailableError("the listener is gone");
  const MemberClaim claim = link->handshake->claim();
  if (claim.id == MemberId()) {
    link->rights = Access::kRead;
    return link->handshake->Welcome(link->socket(), link->rights, [](const auto&, pid_t) { return true; });
  }
  backlog->admission()->Ask(claim, [this, link](Admission::Decision decision) {
    const MutexLock lock(mutex_);
    decided_.push_back({link, std::move(decision)});
    eventfd_write(wake_.get(), 1);
  });
  return absl::OkStatus();
}

void Service::ApplyDecisions() {
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  std::vector<Decided> decided;
  {
    const MutexLock lock(mutex_);
    decided.swap(decided_);
  }
  for (Decided& one : decided) {
    if (!one.link->handshaking) continue;  // dropped meanwhile
    const absl::Status welcome = Welcome(one.link, std::move(one.decision));
    if (!welcome.ok()) Refuse(*one.link, welcome);
  }
}

absl::Status Service::Welcome(const std::shared_ptr<Link>& link, Admission::Decision decision) {
  if (decision.verdict == Verdict::kUnknown) {
    return absl::UnavailableError("the server cannot determine now whether this member is alive");
  }
  if (decision.verdict == Verdict::kRefused) {
    return absl::PermissionDeniedError("no member with this id and key lives: the membership has ended");
  }
  link->place = std::move(decision.place);
  return link->handshake->Welcome(
      link->socket(), link->rights, [&](std::shared_ptr<const Mapping> channel, pid_t pid) {
        link->served = std::make_shared<ServedChannel>(std::move(channel), pid, *identity_.initiators,
                                                       [weak = std::weak_ptr<Link>(link)] {
                                                         if (const std::shared_ptr<Link> held = weak.lock())
                                                           held->Shutdown();
                                                       });
        return link->place.Serve(decision.key, link->served);
      });
}

absl::Status Service::FinishHandshake(const std::shared_ptr<Link>& link) {
  link->handshaking = false;
  const std::shared_ptr<Backlog> backlog = BacklogOf(*link);
  if (backlog == nullptr) return absl::UnavailableError("the listener is gone");
  if (backlog->passive()) {
    link->handshake.reset();
    return absl::OkStatus();
  }
  if (backlog->purpose() == Purpose::kDatagrams) {
    link->datagram_peer = link->handshake->established().peer;
    link->handshake.reset();
    return absl::OkStatus();
  }
  return backlog->Push(link) ? absl::OkStatus()
                             : absl::UnavailableError("the listener takes no more connections");
}

absl::Status Service::AnswerRegionRequest(Link& link, uint32_t rkey) {
  Message reply{.type = MessageType::kRegionReply, .rkey = rkey};
  absl::StatusOr<RegionGrant> grant = identity_.regions->Grant(rkey, link.rights);
  if (!grant.ok()) {
    Message refusal = MakeRefusal(grant.status());
    refusal.type = MessageType::kRegionReply;
    refusal.rkey = rkey;
    return SendMessage(link.socket(), refusal);
  }
  reply.bytes = grant->bytes;
  reply.access = static_cast<uint32_t>(grant->access);
  const int descriptors[] = {grant->descriptor.get()};
  return SendMessage(link.socket(), reply, descriptors);
}

void Service::Drop(Link& link) {
  link.handshaking = false;
  Unwatch(link.id, link.socket());
  link.Shutdown();
  link.MarkLost();
  if (link.served != nullptr) {
    link.served->OnLost();
    link.served->Over() ? link.place.Leave() : link.place.Detach();
  }
  identity_.datagrams->Forget(link.id);
}

void Service::DropOverdue() {
  while (!handshakes_.empty()) {
    const auto link = handshakes_.front().lock();
    if (link != nullptr && link->handshaking) {
      if (!RealClock().Passed(link->handshake_deadline)) return;
      Drop(*link);
    }
    handshakes_.pop_front();
  }
}

int Service::NextTimeoutMs() const {
  const auto link = handshakes_.empty() ? nullptr : handshakes_.front().lock();
  if (link == nullptr) return handshakes_.empty() ? -1 : 0;
  const int64_t left_ns = link->handshake_deadline.ns - RealClock().NowNs();
  return static_cast<int>(std::clamp<int64_t>(left_ns / 1'000'000 + 1, 0, 60'000));
}

}  // namespace nam::fabric::shm
