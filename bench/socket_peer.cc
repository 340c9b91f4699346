#include "bench/socket_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "bench/scatter.h"

namespace nam::bench {
namespace {

constexpr size_t kReceiveBytesMax = 1u << 20;  // per call
constexpr size_t kPartsMax = 64;

struct Hello {
  uint64_t request_bytes = 0;
  uint64_t reply_bytes = 0;
};

absl::Status SocketError(const char* doing) {
  const int error = errno;
  return absl::UnavailableError(absl::StrFormat("plain socket: %s: %s", doing, std::strerror(error)));
}

absl::StatusOr<sockaddr_in> ParseAddress(const std::string& host, uint16_t port) {
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(port)};
  if (inet_pton(AF_INET, host.c_str(), &at.sin_addr) != 1)
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is no IPv4 address", host));
  return at;
}

void DoNotDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// A blocking send of everything; false if the peer is gone.
bool SendParts(int socket, std::span<iovec> parts) {
  msghdr message{};
  while (!parts.empty()) {
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    for (auto left = static_cast<size_t>(sent); left > 0;) {
      iovec& part = parts.front();
      const size_t taken = std::min(left, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      left -= taken;
      if (part.iov_len == 0) parts = parts.subspan(1);
    }
  }
  return true;
}

bool ReceiveWhole(int socket, void* into, size_t bytes) {
  return recv(socket, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketServer>> SocketServer::Start(fabric::Fabric& fabric,
                                                                  const std::string& host,
                                                                  uint64_t memory_bytes) {
  std::unique_ptr<SocketServer> server(new SocketServer(fabric));
  NAM_ASSIGN_OR_RETURN(sockaddr_in at, ParseAddress(host, 0));
  server->listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = sizeof(at);
  if (bind(server->listener_.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 ||
      listen(server->listener_.get(), 16) != 0 ||
      getsockname(server->listener_.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) {
    return SocketError("listen");
  }
  server->address_ = absl::StrFormat("%s:%d", host, ntohs(at.sin_port));
  server->memory_.assign(memory_bytes, std::byte{1});
  server->accept_thread_ = fabric.StartThread("plain-accept", [server = server.get()] { server->Accept(); });
  return server;
}

SocketServer::~SocketServer() {
  stopping_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
}

void SocketServer::Accept() {
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  while (!stopping_) {
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) break;
    DoNotDelay(connection.get());
    connections_.push_back(std::move(connection));
    threads.push_back(
        fabric_.StartThread("plain-socket", [this, socket = connections_.back().get()] { Serve(socket); }));
  }
  for (const UniqueFd& connection : connections_) shutdown(connection.get(), SHUT_RDWR);
}

void SocketServer::Serve(int socket) {
  Hello hello;
  if (!ReceiveWhole(socket, &hello, sizeof(hello))) return;
  if (hello.request_bytes == 0 || hello.reply_bytes == 0 || hello.reply_bytes > memory_.size()) return;
  Scatter reply_at(memory_.size(), hello.reply_bytes);
  const size_t receive_bytes = std::min(kReceiveBytesMax, memory_.size());
  uint64_t received = 0;  // bytes of unanswered requests
  size_t at = 0;
  std::array<iovec, kPartsMax> parts;
  while (true) {
    // Uses the next megabyte of the memory, as payloads of requests would land in a region.
    if (at + receive_bytes > memory_.size()) at = 0;
    const ssize_t got = recv(socket, memory_.data() + at, receive_bytes, 0);
    if (got <= 0) return;
    at += static_cast<size_t>(got);
    received += static_cast<uint64_t>(got);
    while (received >= hello.request_bytes) {
      size_t count = 0;
      for (; count < parts.size() && received >= hello.request_bytes; received -= hello.request_bytes)
        parts[count++] = {memory_.data() + reply_at.Next(), hello.reply_bytes};
      if (!SendParts(socket, std::span(parts).first(count))) return;
    }
  }
}

absl::StatusOr<std::unique_ptr<SocketClient>> SocketClient::Connect(const std::string& address,
                                                                    uint64_t request_bytes,
                                                                    uint64_t reply_bytes,
                                                                    std::span<std::byte> memory) {
  const size_t colon = address.rfind(':');
  NAM_ASSIGN_OR_RETURN(
      const sockaddr_in at,
      ParseAddress(address.substr(0, colon), static_cast<uint16_t>(std::stoi(address.substr(colon + 1)))));
  UniqueFd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0)
    return SocketError("connect");
  DoNotDelay(connection.get());
  Hello hello{request_bytes, reply_bytes};
  iovec part{&hello, sizeof(hello)};
  if (!SendParts(connection.get(), {&part, 1})) return SocketError("send");
  return std::unique_ptr<SocketClient>(
      new SocketClient(std::move(connection), request_bytes, reply_bytes, memory));
}

bool SocketClient::Ask(uint64_t requests) {
  while (requests > 0) {
    std::array<iovec, kPartsMax> parts;
    size_t count = 0;
    for (; count < parts.size() && requests > 0; --requests) {
      if (send_at_ + request_bytes_ > memory_.size()) send_at_ = 0;
      parts[count++] = {memory_.data() + send_at_, request_bytes_};
      send_at_ += request_bytes_;
    }
    if (!SendParts(socket_.get(), std::span(parts).first(count))) return false;
  }
  return true;
}

absl::StatusOr<double> SocketClient::Run(uint32_t in_flight, int64_t duration_ns) {
  const size_t window = std::min<size_t>(memory_.size(), reply_bytes_ * in_flight);
  const int64_t start_ns = RealClock().NowNs();
  int64_t now_ns = start_ns;
  uint64_t asked = in_flight, answered = 0, received = 0;
  size_t at = 0;
  if (!Ask(in_flight)) return SocketError("send");
  while (answered < asked) {
    if (at == window) at = 0;
    const ssize_t got = recv(socket_.get(), memory_.data() + at, window - at, 0);
    if (got <= 0) return SocketError("recv");
    at += static_cast<size_t>(got);
    received += static_cast<uint64_t>(got);
    const uint64_t more = received / reply_bytes_ - answered;
    answered += more;
    if (more == 0) continue;
    now_ns = RealClock().NowNs();
    if (now_ns - start_ns >= duration_ns) continue;
    asked += more;
    if (!Ask(more)) return SocketError("send");
  }
  return static_cast<double>(answered) * 1e9 / static_cast<double>(std::max<int64_t>(now_ns - start_ns, 1));
}

}  // namespace nam::bench
