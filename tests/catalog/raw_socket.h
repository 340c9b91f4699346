#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <random>
#include <string>

#include "base/unique_fd.h"

namespace nam {

/// A connection to a port of this host.
inline UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) fd.reset();
  return fd;
}

/// A process at a port of this host that takes connections and says nothing.
inline UniqueFd ListenSilently(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool listens =
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0 && ::listen(fd.get(), 16) == 0;
  if (!listens) fd.reset();
  return fd;
}

/// Throws random bytes at a port of this host, `connections` times, and hangs up each time.
inline void SendGarbage(uint16_t port, uint32_t seed, int connections) {
  std::mt19937 random(seed);
  for (int i = 0; i < connections; ++i) {
    const UniqueFd fd = ConnectTo(port);
    if (!fd.valid()) continue;
    std::string bytes;
    // Half of them begin as HTTP/2, so that the frames behind it are parsed.
    if (i % 2 == 0) bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (uint32_t n = random() % 4'096; n > 0; --n) bytes.push_back(static_cast<char>(random()));
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

}  // namespace nam
