#include "bench/two_phase/socket_transport.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"

namespace nam::bench::two_phase {
namespace {

namespace net = fabric::net;

constexpr int kBacklog = 256;
constexpr size_t kReceiveBytes = 256 << 10;
// A peer that asks and does not read its answers is dropped.
constexpr size_t kUnsentBytesMax = 256 << 20;
// Distinct from connections, which begin with 1 and never get there.
constexpr uint64_t kDoorbell = ~uint64_t{0};
constexpr uint64_t kListener = ~uint64_t{1};

absl::Status NoDescriptors() {
  return absl::ResourceExhaustedError("no file descriptors left for a connection: raise `ulimit -n`");
}

}  // namespace

SocketTransport::SocketTransport(const TransportOptions& options)
    : options_(options),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      doorbell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      arrived_(kReceiveBytes) {}

absl::StatusOr<std::unique_ptr<Transport>> SocketTransport::Open(const TransportOptions& options) {
  std::unique_ptr<SocketTransport> transport(new SocketTransport(options));
  if (!transport->epoll_.valid() || !transport->doorbell_.valid()) return NoDescriptors();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kDoorbell}};
  NAM_CHECK(epoll_ctl(transport->epoll_.get(), EPOLL_CTL_ADD, transport->doorbell_.get(), &event) == 0);
  if (!options.host.empty()) NAM_RETURN_IF_ERROR(transport->Start(options.host));
  return transport;
}

absl::Status SocketTransport::Start(const std::string& host) {
  NAM_ASSIGN_OR_RETURN(listener_, net::ListenOn({host, "0"}, kBacklog));
  const bool v6 = host.find(':') != std::string::npos;
  const int port = net::BoundPort(listener_.get());
  address_ = v6 ? absl::StrFormat("[%s]:%d", host, port) : absl::StrFormat("%s:%d", host, port);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListener}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0);
  return absl::OkStatus();
}

absl::StatusOr<ConnectionId> SocketTransport::Connect(const std::string& address, Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(UniqueFd fd, net::ConnectTo(address, deadline));
  return Watch(std::move(fd));
}

absl::StatusOr<ConnectionId> SocketTransport::Watch(UniqueFd fd) {
  net::ConfigurePeerSocket(fd.get(), options_.peer_timeout_us);
  auto socket = std::make_unique<Socket>();
  const int descriptor = fd.get();
  socket->fd = std::move(fd);
  const ConnectionId id = Add(std::move(socket));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id.value()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return id;
  Close(id);
  return NoDescriptors();
}

void SocketTransport::WatchForRoom(Socket& socket, bool wanted) {
  if (std::exchange(socket.awaits_room, wanted) == wanted) return;
  epoll_event event{.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.u64 = socket.id.value()}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.fd.get(), &event) == 0);
}

void SocketTransport::AcceptAll() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    Watch(std::move(fd)).IgnoreError();
  }
}

void SocketTransport::Wake() {
  eventfd_write(doorbell_.get(), 1);
}

bool SocketTransport::Push(Stream& stream) {
  auto& socket = static_cast<Socket&>(stream);
  while (stream.sent < stream.output.size()) {
    iovec part{stream.output.data() + stream.sent, stream.output.size() - stream.sent};
    const net::IoResult result = net::SendSome(socket.fd.get(), {&part, 1});
    if (result.lost || part.iov_len > kUnsentBytesMax) return false;
    if (result.bytes == 0) break;
    stream.sent += result.bytes;
  }
  const bool all = stream.sent == stream.output.size();
  if (all) {
    stream.output.clear();
    stream.sent = 0;
  }
  WatchForRoom(socket, !all);
  return true;
}

void SocketTransport::Read(Socket& socket, FrameSink& sink) {
  iovec part{arrived_.data(), arrived_.size()};
  const net::IoResult result = net::ReceiveSome(socket.fd.get(), {&part, 1});
  if (result.lost) MarkLost(socket);
  Deliver(socket, std::span(arrived_).first(result.bytes), sink);
}

void SocketTransport::Await(FrameSink& sink, Deadline deadline) {
  std::array<epoll_event, 128> events;
  const int64_t left_ms = std::clamp<int64_t>((deadline.ns - RealClock().NowNs()) / 1'000'000 + 1, 0, 60'000);
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(left_ms));
  NAM_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const uint64_t from = events[i].data.u64;
    if (from == kListener) {
      AcceptAll();
    } else if (from == kDoorbell) {
      eventfd_t rings = 0;
      eventfd_read(doorbell_.get(), &rings);
    } else if (Stream* const stream = Find(ConnectionId(from)); stream != nullptr) {
      const uint32_t what = events[i].events;
      if ((what & EPOLLOUT) != 0 && !Push(*stream)) MarkLost(*stream);
      if ((what & ~uint32_t{EPOLLOUT}) != 0) Read(static_cast<Socket&>(*stream), sink);
    }
  }
}

}  // namespace nam::bench::two_phase
