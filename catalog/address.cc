#include "catalog/address.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/unique_fd.h"

namespace nam::catalog {

namespace {

bool IsLoopback(const std::string& host) {
  return host.rfind("127.", 0) == 0 || host == "localhost" || host == "[::1]" || host == "::1";
}

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "::";
}

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

absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 65'535 || (address.find(':') != colon && address.front() != '[')) {
    return absl::InvalidArgumentError(
        absl::StrFormat("`%s` is not an address; write host:port, for example 127.0.0.1:4700", address));
  }
  return std::make_pair(address.substr(0, colon), static_cast<uint16_t>(port));
}

std::string BareHost(const std::string& host) {
  return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

std::string AdvertisedAddress(const std::string& address, const std::string& advertised_host,
                              const std::string& host_name) {
  const auto split = SplitAddress(address);
  if (!split.ok()) return address;
  if (!advertised_host.empty()) return absl::StrCat(advertised_host, ":", split->second);
  return IsWildcard(split->first) ? absl::StrCat(host_name, ":", split->second) : address;
}

absl::Status CheckAdvertised(const std::string& catalog_address, const std::vector<std::string>& advertised) {
  const auto catalog = SplitAddress(catalog_address);
  if (!catalog.ok()) return catalog.status();
  for (const std::string& address : advertised) {
    const auto split = SplitAddress(address);
    if (!split.ok()) continue;  // not a network address
    const bool wildcard = IsWildcard(split->first);
    if (!wildcard && (!IsLoopback(split->first) || IsLoopback(catalog->first))) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "this server would tell others to connect to %s, %s, while it reaches the catalog at %s; listen on "
        "an "
        "address that they reach (--control-listen, --fabric-listen), or name it by --advertised-host",
        address, wildcard ? "which means every address" : "which on their hosts is their own",
        catalog_address));
  }
  return absl::OkStatus();
}

std::string FabricHost(const std::string& advertised_host, const std::string& fabric_listen_address,
                       const std::string& control_listen_address) {
  if (!advertised_host.empty()) return advertised_host;
  for (const std::string& address : {fabric_listen_address, control_listen_address}) {
    const auto split = SplitAddress(address);
    if (!split.ok()) continue;
    return BareHost(split->first);
  }
  return "";
}

bool ConnectionRefused(const std::string& address, int64_t timeout_us) {
  const auto host_port = SplitAddress(address);
  if (!host_port.ok()) return false;
  const std::string host = BareHost(host_port->first);
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
