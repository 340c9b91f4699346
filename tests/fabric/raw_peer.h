#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "fabric/net/authentication.h"

namespace nam::fabric::net {

/// A socket that listens on a port of its own, and that the kernel accepts for.
class RawListener {
 public:
  RawListener() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
    EXPECT_EQ(listen(fd_.get(), 4), 0);
    socklen_t length = sizeof(at);
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&at), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  const std::string& address() const { return address_; }
  UniqueFd Accept() const { return UniqueFd(accept(fd_.get(), nullptr, nullptr)); }

 private:
  const UniqueFd fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address_;
};

/// A peer that speaks as much of the protocol as a test needs. Its calls block for a minute
/// at most, as a hang guard.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address, int receive_buffer_bytes = 0) {
    fd_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{60, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (receive_buffer_bytes > 0) {
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }

  bool Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(sent);
    }
    return true;
  }
  template <typename Frame>
  bool SendFrame(const Frame& frame) {
    return Send({reinterpret_cast<const std::byte*>(&frame), sizeof(frame)});
  }
  bool Receive(std::span<std::byte> bytes) {
    return recv(fd_.get(), bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size());
  }
  template <typename Frame>
  std::optional<Frame> ReceiveFrame() {
    Frame frame;
    if (!Receive({reinterpret_cast<std::byte*>(&frame), sizeof(frame)})) return std::nullopt;
    return frame;
  }
  /// Waits until the peer closes or resets, discarding its data. False after a minute.
  bool ClosedByPeer() {
    char bytes[4096];
    while (true) {
      const ssize_t got = recv(fd_.get(), bytes, sizeof(bytes), 0);
      if (got == 0) return true;
      if (got < 0) return errno == ECONNRESET;
    }
  }
  /// The peer's verdict; nothing if it closed before.
  std::optional<ServerVerdict> Authenticate(const std::string& secret, ClientHello hello = {}) {
    FillRandom(hello.nonce);
    if (!SendFrame(hello)) return std::nullopt;
    const auto challenge = ReceiveFrame<ServerChallenge>();
    if (!challenge) return std::nullopt;
    if (!SendFrame(ClientProof{ProveClient(secret, hello, *challenge)})) return std::nullopt;
    const auto proof = ReceiveFrame<ServerProof>();
    if (!proof) return std::nullopt;
    return proof->verdict;
  }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace nam::fabric::net
