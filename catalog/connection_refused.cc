#include "catalog/connection_refused.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/unique_fd.h"
#include "catalog/address.h"

namespace nam::catalog {
namespace {

bool Refuses(const addrinfo& to, int64_t timeout_us) {
  const UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return false;
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return false;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  pollfd wait{fd.get(), POLLOUT, 0};
  if (::poll(&wait, 1, static_cast<int>(timeout_us / 1'000)) != 1) return false;
  int error = 0;
  socklen_t bytes = sizeof(error);
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == ECONNREFUSED;
}

}  // namespace

bool ConnectionRefused(const std::string& address, int64_t timeout_us) {
  const auto host_port = SplitAddress(address);
  if (!host_port.ok()) return false;
  std::string host = host_port->first;
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(host_port->second).c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    if (!Refuses(*to, timeout_us)) return false;
  }
  return found != nullptr;
}

}  // namespace nam::catalog
