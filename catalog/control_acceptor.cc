#include "catalog/control_acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/address.h"
#include "catalog/client_hello.h"
#include "fabric/threads.h"

namespace nam::catalog {
namespace {

constexpr int kBacklog = 512;
constexpr size_t kHelloBytesMax = 4'096;  // gRPC's has about 300
constexpr int kAcceptsOfOneRound = 64;
constexpr int64_t kPauseWithoutDescriptorsNs = 100'000'000;
constexpr int64_t kLogPauseNs = 60'000'000'000;
constexpr int64_t kNever = INT64_MAX;
// A fatal alert, unrecognized_name (112): RFC 6066's answer of a server with another name.
constexpr unsigned char kNotOurName[] = {21, 3, 3, 0, 2, 2, 112};

/// Refills with time, up to a second's worth.
class TokenBucket {
 public:
  TokenBucket(int per_s, int64_t now_ns) : refill_ns_(1'000'000'000 / per_s), last_ns_(now_ns - kBurstNs) {}

  bool TryConsume(int64_t now_ns) {
    last_ns_ = std::max(last_ns_, now_ns - kBurstNs);
    if (last_ns_ + refill_ns_ > now_ns) return false;
    last_ns_ += refill_ns_;
    return true;
  }
  int64_t next_ns() const { return last_ns_ + refill_ns_; }

 private:
  static constexpr int64_t kBurstNs = 1'000'000'000;
  const int64_t refill_ns_;
  int64_t last_ns_;
};

// In gRPC's format (grpc_sockaddr_to_uri): ipv4:127.0.0.1:5000, ipv6:%5B::1%5D:5000.
std::string PeerName(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  const std::string scope = v6.sin6_scope_id == 0 ? "" : absl::StrCat("%25", v6.sin6_scope_id);
  return absl::StrCat("ipv6:%5B", text, scope, "%5D:", ntohs(v6.sin6_port));
}

std::string WhyNotListening(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is in use by another process; choose another, or 0 for any";
    case EADDRNOTAVAIL:
      return "this host has no such address";
    case EACCES:
      return "no permission for this port; choose one above 1023";
    default:
      return std::strerror(error);
  }
}

// One socket for one of the host's addresses. Picks `port` if it is 0.
absl::StatusOr<UniqueFd> ListenOn(const addrinfo& where, uint16_t& port) {
  UniqueFd fd(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  std::memcpy(&address, where.ai_addr, where.ai_addrlen);
  in_port_t& its_port = where.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                    : reinterpret_cast<sockaddr_in&>(address).sin_port;
  its_port = htons(port);
  const int on = 1;
  socklen_t bytes = where.ai_addrlen;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), raw, bytes) != 0 || ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), raw, &bytes) != 0) {
    const int error = errno;
    const std::string why = WhyNotListening(error);
    return error == EADDRINUSE ? absl::AlreadyExistsError(why) : absl::UnavailableError(why);
  }
  port = ntohs(its_port);
  return fd;
}

absl::StatusOr<std::vector<UniqueFd>> ListenOnAll(const std::string& host, uint16_t& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(BareHost(host).c_str(), "0", &hints, &found); failed != 0) {
    return absl::UnavailableError(absl::StrCat("unknown host: ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<UniqueFd> listeners;
  absl::Status why = absl::UnavailableError("the host has no address");
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    if (next->ai_family != AF_INET && next->ai_family != AF_INET6) continue;
    absl::StatusOr<UniqueFd> listener = ListenOn(*next, port);
    if (listener.ok()) {
      listeners.push_back(*std::move(listener));
      continue;
    }
    why = listener.status();
    // A name may resolve to an address that this host lacks (::1 of localhost), but ports are not shared.
    if (absl::IsAlreadyExists(why)) return why;
  }
  if (listeners.empty()) return why;
  return listeners;
}

class ControlAcceptorImpl final : public ControlAcceptor {
 public:
  ControlAcceptorImpl(std::vector<UniqueFd> listeners, std::string address, std::string name,
                      const AcceptBounds& bounds)
      : address_(std::move(address)),
        name_(std::move(name)),
        bounds_(bounds),
        listeners_(std::move(listeners)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        accepts_(bounds.accepts_per_s, RealClock().NowNs()),
        handshakes_(bounds.handshakes_per_s, RealClock().NowNs()) {
    NAM_CHECK(epoll_.valid() && wake_.valid(), "descriptors of an acceptor");
  }
  ~ControlAcceptorImpl() override { Stop(); }

  const std::string& address() const override { return address_; }
  void Start(HandOver hand_over) override;
  void Called(const std::string& peer) override;
  bool Connected(const std::string& peer) const override;
  void Stop() override;
  Counts counts() const override;

 private:
  enum class Stage { kStranger, kGuest, kMember };
  struct Connection {
    UniqueFd fd;  // a stranger's only one; otherwise a duplicate of gRPC's
    Stage stage = Stage::kStranger;
    int64_t hello_by_ns = 0;
    std::string peer;
  };
  using Connections = std::map<uint64_t, Connection>;  // by age
  static constexpr uint64_t kWake = 0;                 // 1 …: listeners, then connections

  void Run();
  int64_t Wait(int64_t now_ns) const;
  void Watch(int operation, int fd, uint64_t id, uint32_t events) const;
  void WatchListeners(bool on);
  std::optional<Connections::iterator> StrangerOrForget(uint64_t id);
  void AcceptSome(int listener);
  void Admit(UniqueFd fd, const sockaddr_storage& from);
  void Look(Connections::iterator stranger);
  void HandOn(Connections::iterator stranger);
  void Refuse(Connections::iterator stranger, size_t bytes);
  void Forget(Connections::iterator connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TurnAway(Connections::iterator connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogTurnedAway(int64_t now_ns);
  void ForgetLateStrangers(int64_t now_ns);

  const std::string address_;
  const std::string name_;
  const AcceptBounds bounds_;
  HandOver hand_over_;
  std::vector<UniqueFd> listeners_;
  const UniqueFd epoll_;
  const UniqueFd wake_;

  mutable Mutex mutex_;  // not held while gRPC takes a socket
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> strangers_ ABSL_GUARDED_BY(mutex_), guests_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint64_t> guests_by_peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0, handed_over_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  // Acceptor thread only.
  TokenBucket accepts_, handshakes_;
  int64_t accept_again_ns_ = 0;  // listeners are not watched until then
  bool listening_ = false;
  uint64_t turned_away_ = 0;  // since the last log line
  int64_t log_again_ns_ = 0;

  std::unique_ptr<fabric::Thread> thread_;
};

void ControlAcceptorImpl::Watch(int operation, int fd, uint64_t id, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
}

void ControlAcceptorImpl::WatchListeners(bool on) {
  if (std::exchange(listening_, on) == on) return;
  for (size_t i = 0; i < listeners_.size(); ++i)
    Watch(on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listeners_[i].get(), 1 + i, EPOLLIN);
}

void ControlAcceptorImpl::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  {
    const MutexLock lock(mutex_);
    next_id_ = 1 + listeners_.size();
  }
  Watch(EPOLL_CTL_ADD, wake_.get(), kWake, EPOLLIN);
  thread_ = fabric::StartRealThread("nam-accept", [this] { Run(); });
}

void ControlAcceptorImpl::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
  thread_.reset();
  listeners_.clear();
  const MutexLock lock(mutex_);
  while (!strangers_.empty()) Forget(connections_.find(*strangers_.begin()));
}

ControlAcceptor::Counts ControlAcceptorImpl::counts() const {
  const MutexLock lock(mutex_);
  const int strangers = static_cast<int>(strangers_.size()), guests = static_cast<int>(guests_.size());
  return {strangers, guests, static_cast<int>(connections_.size()) - strangers - guests, accepted_,
          handed_over_};
}

void ControlAcceptorImpl::Called(const std::string& peer) {
  const MutexLock lock(mutex_);
  const auto found = guests_by_peer_.find(peer);
  if (found == guests_by_peer_.end()) return;
  connections_.at(found->second).stage = Stage::kMember;
  guests_.erase(found->second);
  guests_by_peer_.erase(found);
}

bool ControlAcceptorImpl::Connected(const std::string& peer) const {
  const MutexLock lock(mutex_);
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](const auto& connection) { return connection.second.peer == peer; });
}

// Milliseconds for epoll_wait; -1: no timeout.
int64_t ControlAcceptorImpl::Wait(int64_t now_ns) const {
  int64_t until_ns = listening_ ? kNever : accept_again_ns_;
  const MutexLock lock(mutex_);
  if (!strangers_.empty()) until_ns = std::min(until_ns, connections_.at(*strangers_.begin()).hello_by_ns);
  return until_ns == kNever ? -1 : std::max<int64_t>(0, (until_ns - now_ns) / 1'000'000 + 1);
}

void ControlAcceptorImpl::Run() {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  while (true) {
    int64_t now_ns = RealClock().NowNs();
    if (now_ns >= accept_again_ns_) WatchListeners(true);
    const int count = ::epoll_wait(epoll_.get(), events, kEvents, static_cast<int>(Wait(now_ns)));
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWake) return;
      if (id <= listeners_.size()) {
        if (listening_) AcceptSome(listeners_[id - 1].get());
        continue;
      }
      if (const auto stranger = StrangerOrForget(id)) Look(*stranger);  // only this thread uses strangers
    }
    now_ns = RealClock().NowNs();
    ForgetLateStrangers(now_ns);
    LogTurnedAway(now_ns);
  }
}

// The stranger of which epoll has told; a connection of gRPC's has hung up then, and is forgotten.
std::optional<ControlAcceptorImpl::Connections::iterator> ControlAcceptorImpl::StrangerOrForget(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return std::nullopt;
  if (found->second.stage == Stage::kStranger) return found;
  Forget(found);
  return std::nullopt;
}

void ControlAcceptorImpl::AcceptSome(int listener) {
  for (int i = 0; i < kAcceptsOfOneRound; ++i) {
    const int64_t now_ns = RealClock().NowNs();
    if (!accepts_.TryConsume(now_ns)) {
      accept_again_ns_ = accepts_.next_ns();
      return WatchListeners(false);
    }
    sockaddr_storage from{};
    socklen_t bytes = sizeof(from);
    UniqueFd fd(
        ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      Admit(std::move(fd), from);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      accept_again_ns_ = now_ns + kPauseWithoutDescriptorsNs;
      WatchListeners(false);
    }
    if (errno != ECONNABORTED && errno != EINTR) return;
  }
}

void ControlAcceptorImpl::Admit(UniqueFd fd, const sockaddr_storage& from) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Connections::iterator added;
  {
    const MutexLock lock(mutex_);
    ++accepted_;
    if (strangers_.size() >= static_cast<size_t>(bounds_.strangers)) {
      // At the highest rate of accepts, each had strangers / accepts_per_s of time to send the name.
      TurnAway(connections_.find(*strangers_.begin()));
    }
    if (connections_.size() >= static_cast<size_t>(bounds_.connections)) {
      ++turned_away_;
      return;
    }
    const uint64_t id = next_id_++;
    added = connections_.emplace(id, Connection()).first;
    added->second.fd = std::move(fd);
    added->second.hello_by_ns = RealClock().NowNs() + bounds_.hello_timeout_us * 1'000;
    added->second.peer = PeerName(from);
    strangers_.insert(id);
  }
  // Edge-triggered: peeked bytes stay in the socket and would be reported forever.
  Watch(EPOLL_CTL_ADD, added->second.fd.get(), added->first, EPOLLIN | EPOLLRDHUP | EPOLLET);
  Look(added);
}

void ControlAcceptorImpl::Look(Connections::iterator stranger) {
  char bytes[kHelloBytesMax];
  const ssize_t seen = ::recv(stranger->second.fd.get(), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  if (seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  std::string_view name;
  const Hello hello = seen <= 0 ? Hello::kForeign : ParseHello({bytes, static_cast<size_t>(seen)}, &name);
  if (hello == Hello::kIncomplete && seen < static_cast<ssize_t>(sizeof(bytes))) return;
  if (hello == Hello::kComplete && name == name_ && handshakes_.TryConsume(RealClock().NowNs()))
    return HandOn(stranger);
  if (hello == Hello::kComplete && name != name_) return Refuse(stranger, static_cast<size_t>(seen));
  const MutexLock lock(mutex_);
  if (seen > 0) {
    TurnAway(stranger);
  } else {
    Forget(stranger);  // hung up
  }
}

// The name belongs to another cluster, or is missing: sends the alert, for the client's message.
void ControlAcceptorImpl::Refuse(Connections::iterator stranger, size_t bytes) {
  const int fd = stranger->second.fd.get();
  char unread[kHelloBytesMax];
  (void)!::recv(fd, unread, bytes, MSG_DONTWAIT);  // unread bytes would turn the close into a reset
  (void)!::send(fd, kNotOurName, sizeof(kNotOurName), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_WR);
  const MutexLock lock(mutex_);
  TurnAway(stranger);
}

void ControlAcceptorImpl::HandOn(Connections::iterator stranger) {
  UniqueFd given(::fcntl(stranger->second.fd.get(), F_DUPFD_CLOEXEC, 0));
  {
    const MutexLock lock(mutex_);
    if (!given.valid() || stopped_) {
      Forget(stranger);
      return;
    }
    // gRPC shuts a socket down before it closes it, so the end is visible here, too.
    Watch(EPOLL_CTL_MOD, stranger->second.fd.get(), stranger->first, EPOLLRDHUP | EPOLLET);
    stranger->second.stage = Stage::kGuest;
    strangers_.erase(stranger->first);
    if (guests_.size() >= static_cast<size_t>(bounds_.guests)) {
      const auto oldest = connections_.find(*guests_.begin());
      ::shutdown(oldest->second.fd.get(), SHUT_RDWR);
      TurnAway(oldest);
    }
    guests_.insert(stranger->first);
    guests_by_peer_[stranger->second.peer] = stranger->first;
    ++handed_over_;
  }
  hand_over_(given.release());
}

// epoll stops watching only with the last descriptor, which may be gRPC's.
void ControlAcceptorImpl::Forget(Connections::iterator connection) {
  const uint64_t id = connection->first;
  Watch(EPOLL_CTL_DEL, connection->second.fd.get(), id, 0);
  strangers_.erase(id);
  if (guests_.erase(id) != 0) {
    const auto named = guests_by_peer_.find(connection->second.peer);
    if (named != guests_by_peer_.end() && named->second == id) guests_by_peer_.erase(named);
  }
  connections_.erase(connection);
}

void ControlAcceptorImpl::TurnAway(Connections::iterator connection) {
  Forget(connection);
  ++turned_away_;
}

// Without the mutex, because every call takes it and a log may block.
void ControlAcceptorImpl::LogTurnedAway(int64_t now_ns) {
  if (turned_away_ == 0 || now_ns < log_again_ns_) return;
  LogWarning(absl::StrFormat("%s: refused %d connections from strangers or beyond the limits", address_,
                             turned_away_));
  turned_away_ = 0;
  log_again_ns_ = now_ns + kLogPauseNs;
}

void ControlAcceptorImpl::ForgetLateStrangers(int64_t now_ns) {
  const MutexLock lock(mutex_);
  while (!strangers_.empty()) {
    const auto oldest = connections_.find(*strangers_.begin());
    if (oldest->second.hello_by_ns > now_ns) return;
    TurnAway(oldest);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlAcceptor>> ControlAcceptor::Listen(const std::string& address,
                                                                         const std::string& name,
                                                                         const AcceptBounds& bounds) {
  NAM_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(address));
  uint16_t port = host_port.second;
  absl::StatusOr<std::vector<UniqueFd>> listeners = ListenOnAll(host_port.first, port);
  if (!listeners.ok()) {
    return absl::UnavailableError(
        absl::StrFormat("cannot listen on %s: %s", address, std::string(listeners.status().message())));
  }
  return std::make_unique<ControlAcceptorImpl>(*std::move(listeners),
                                               absl::StrCat(host_port.first, ":", port), name, bounds);
}

}  // namespace nam::catalog
