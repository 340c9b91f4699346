#include "fabric/net/socket.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::fabric::net {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrFormat("no address for host \"%s\" (%s): check the name, or give an IP address",
                        endpoint.host, gai_strerror(error)));
  }
  return Addresses(found, freeaddrinfo);
}

void SetOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

UniqueFd OpenSocket(const addrinfo& address) {
  return UniqueFd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// DEADLINE_EXCEEDED if the socket does not become ready for `events`.
absl::Status WaitReady(int fd, short events, Deadline deadline) {
  while (true) {
    const int64_t left_ns = deadline.ns - RealClock().NowNs();
    if (left_ns <= 0) return absl::DeadlineExceededError("no answer in time");
    const int64_t left_ms = std::min<int64_t>(left_ns / 1'000'000 + 1, 60'000);
    pollfd waiting{fd, events, 0};
    if (poll(&waiting, 1, static_cast<int>(left_ms)) > 0) return absl::OkStatus();
  }
}

absl::Status ConnectError(const std::string& address, int error) {
  const char* hint = "check the address and that the server runs";
  if (error == ECONNREFUSED) hint = "nothing listens there: the server is not running, or uses another port";
  if (error == EHOSTUNREACH || error == ENETUNREACH)
    hint = "no route: check the network and the host's address";
  if (error == ETIMEDOUT) hint = "the host does not answer: it is down, or a firewall drops the packets";
  if (error == EACCES || error == EPERM) hint = "a firewall rule of this host forbids it";
  return absl::UnavailableError(
      absl::StrFormat("cannot connect to %s (%s): %s", address, strerror(error), hint));
}

absl::StatusOr<UniqueFd> ConnectOne(const std::string& address, const addrinfo& to, Deadline deadline) {
  UniqueFd fd = OpenSocket(to);
  if (!fd.valid()) return ConnectError(address, errno);
  if (connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return ConnectError(address, errno);
  if (!WaitReady(fd.get(), POLLOUT, deadline).ok()) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "no answer from %s in time: the host is down, or a firewall drops the packets", address));
  }
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return ConnectError(address, error);
  return fd;
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(const std::string& address) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrFormat(
        "\"%s\" is not an address: expected host:port, such as 10.0.0.2:7000 or [::1]:7000", address));
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return invalid();
  Endpoint endpoint{address.substr(0, colon), address.substr(colon + 1)};
  if (endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  } else if (endpoint.host.find(':') != std::string::npos) {
    return invalid();
  }
  const bool digits =
      std::all_of(endpoint.port.begin(), endpoint.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (endpoint.host.empty() || endpoint.port.empty() || endpoint.port.size() > 5 || !digits) return invalid();
  if (std::stoi(endpoint.port) > 65'535) return invalid();
  return endpoint;
}

absl::StatusOr<UniqueFd> ListenOn(const Endpoint& endpoint, int backlog) {
  NAM_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(endpoint, AI_PASSIVE));
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    UniqueFd fd = OpenSocket(*at);
    if (fd.valid()) SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (fd.valid() && bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(fd.get(), backlog) == 0)
      return fd;
    error = errno;
  }
  const char* hint = "is it an address of this host?";
  if (error == EADDRINUSE)
    hint = "another process listens there: stop it, or use another port (0 picks a free one)";
  if (error == EACCES) hint = "ports below 1024 need privileges: use a higher one";
  return absl::UnavailableError(absl::StrFormat("cannot listen on %s:%s (%s): %s", endpoint.host,
                                                endpoint.port, strerror(error), hint));
}

uint16_t BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  NAM_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) == 0);
  const bool v6 = bound.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                  : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& address, Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(address));
  NAM_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(endpoint, 0));
  absl::Status error = absl::UnavailableError("no address");
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    auto fd = ConnectOne(address, *to, deadline);
    if (fd.ok()) return fd;
    error = fd.status();
  }
  return error;
}

void ConfigurePeerSocket(int fd, int64_t peer_timeout_us) {
  const int timeout_s = static_cast<int>(std::clamp<int64_t>(peer_timeout_us / 1'000'000, 1, 3600));
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, timeout_s / 3));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, timeout_s / 3));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

bool PeerHostVanished(int fd, int64_t peer_timeout_us) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return true;
  return info.tcpi_unacked > 0 && info.tcpi_retransmits > 0 &&
         int64_t{info.tcpi_last_ack_recv} * 1000 > peer_timeout_us;
}

std::string PeerName(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&peer), length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "a peer that is gone";
  }
  return peer.ss_family == AF_INET6 ? absl::StrFormat("[%s]:%s", host, port)
                                    : absl::StrFormat("%s:%s", host, port);
}

absl::Status SendAll(int fd, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const IoResult sent = SendSome(fd, {&part, 1});
    if (sent.lost) return absl::UnavailableError("the peer closed the connection");
    if (sent.bytes == 0) NAM_RETURN_IF_ERROR(WaitReady(fd, POLLOUT, deadline));
    bytes = bytes.subspan(sent.bytes);
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    const IoResult received = ReceiveSome(fd, {&part, 1});
    if (received.lost) return absl::UnavailableError("the peer closed the connection");
    if (received.bytes == 0) NAM_RETURN_IF_ERROR(WaitReady(fd, POLLIN, deadline));
    bytes = bytes.subspan(received.bytes);
  }
  return absl::OkStatus();
}

IoResult SendSome(int fd, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return {.bytes = static_cast<size_t>(sent)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return {};
    return {.lost = true, .unclear = errno != EPIPE && errno != ECONNRESET};
  }
}

IoResult ReceiveSome(int fd, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t received = recvmsg(fd, &message, MSG_DONTWAIT);
    if (received > 0) return {.bytes = static_cast<size_t>(received)};
    if (received == 0) return {.lost = true};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return {.lost = true, .unclear = errno != ECONNRESET};
  }
}

bool AwaitEnd(int fd, Deadline deadline) {
  std::array<std::byte, 4096> discarded;
  while (true) {
    iovec part{discarded.data(), discarded.size()};
    const IoResult received = ReceiveSome(fd, {&part, 1});
    if (received.lost) return !received.unclear;
    // Also if the peer keeps sending.
    if (RealClock().Passed(deadline)) return false;
    if (received.bytes == 0 && !WaitReady(fd, POLLIN, deadline).ok()) return false;
  }
}

}  // namespace nam::fabric::net
