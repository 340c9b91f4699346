#include "fabric/tcp/datagram_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::fabric::tcp {
namespace {

// The kernel doubles it, and counts 8,448 bytes for a datagram of 4 KiB: a burst of 3,900.
constexpr int kReceiveBufferBytes = 16 << 20;
constexpr int kSendBufferBytes = 4 << 20;

bool SetOption(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/// Privileged processes may exceed net.core.rmem_max.
void EnlargeBuffers(int fd) {
  if (!SetOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveBufferBytes)) {
    SetOption(fd, SOL_SOCKET, SO_RCVBUF, kReceiveBufferBytes);
  }
  if (!SetOption(fd, SOL_SOCKET, SO_SNDBUFFORCE, kSendBufferBytes)) {
    SetOption(fd, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  }
}

absl::StatusOr<UniqueFd> OpenSocket() {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot open a UDP socket (%s): raise `ulimit -n`", strerror(errno)));
  }
  EnlargeBuffers(fd.get());
  return fd;
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

/// The IPv4 address of a host name; nothing for an interface name.
std::optional<uint32_t> ResolveIp(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const uint32_t ip = ntohl(reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr.s_addr);
  freeaddrinfo(found);
  return ip;
}

/// True if `name` or `wanted_ip` names the interface at `at`. The loopback has all of 127.0.0.0/8; 0.0.0.0
/// matches any interface that does multicast.
bool IsWanted(const ifaddrs& at, const std::string& name, std::optional<uint32_t> wanted_ip) {
  if (name == at.ifa_name) return true;
  if (!wanted_ip.has_value()) return false;
  const uint32_t ip = ntohl(reinterpret_cast<sockaddr_in*>(at.ifa_addr)->sin_addr.s_addr);
  const bool loopback = (at.ifa_flags & IFF_LOOPBACK) != 0;
  if (*wanted_ip == INADDR_ANY) return !loopback && (at.ifa_flags & IFF_MULTICAST) != 0;
  return ip == *wanted_ip || (loopback && *wanted_ip >> 24 == 127);
}

uint32_t OverrunsOf(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

std::string GroupText(const DatagramAddress& group) {
  return absl::StrFormat("multicast group %s", FormatDatagramAddress(group));
}

}  // namespace

sockaddr_in SocketAddress(uint32_t ip, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(ip);
  return address;
}

absl::StatusOr<DatagramInterface> FindDatagramInterface(const FabricOptions& options) {
  std::string name = options.multicast_interface.empty() ? options.host : options.multicast_interface;
  if (name.empty()) name = "127.0.0.1";
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot list the network interfaces: %s", strerror(errno)));
  }
  const Interfaces owned(list, freeifaddrs);
  const std::optional<uint32_t> wanted_ip =
      if_nametoindex(name.c_str()) == 0 ? ResolveIp(name) : std::nullopt;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0)
      continue;
    if (!IsWanted(*at, name, wanted_ip)) continue;
    return DatagramInterface{at->ifa_name, if_nametoindex(at->ifa_name),
                             ntohl(reinterpret_cast<sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr),
                             at->ifa_flags};
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "no network interface \"%s\" is up with an IPv4 address, which datagrams need: choose another by "
      "--multicast-interface (`ip -4 addr` lists them)",
      name));
}

absl::StatusOr<UniqueFd> OpenDatagramSocket(const DatagramInterface& interface, int multicast_ttl) {
  auto opened = OpenSocket();
  if (!opened.ok()) return opened;
  const int fd = opened->get();
  const sockaddr_in own = SocketAddress(interface.ip, 0);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot bind a UDP socket to interface %s: %s", interface.name, strerror(errno)));
  }
  ip_mreqn through{};
  through.imr_ifindex = static_cast<int>(interface.index);
  through.imr_address.s_addr = htonl(interface.ip);
  if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &through, sizeof(through)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot send multicast through interface %s: %s", interface.name, strerror(errno)));
  }
  NAM_CHECK(SetOption(fd, IPPROTO_IP, IP_MULTICAST_TTL, multicast_ttl));
  // Members on this host receive the group as well.
  NAM_CHECK(SetOption(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1));
  // Datagrams above the path's MTU are fragmented rather than refused.
  NAM_CHECK(SetOption(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT));
  return opened;
}

uint16_t DatagramPort(int fd) {
  sockaddr_in bound{};
  socklen_t length = sizeof(bound);
  NAM_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) == 0);
  return ntohs(bound.sin_port);
}

absl::StatusOr<UniqueFd> OpenMemberSocket(const DatagramInterface& interface, const DatagramAddress& group) {
  auto opened = OpenSocket();
  if (!opened.ok()) return opened;
  const int fd = opened->get();
  // Every member on the host binds the same address and gets its own copy.
  NAM_CHECK(SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1));
  NAM_CHECK(SetOption(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0));
  const sockaddr_in to = SocketAddress(group.ip, group.port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot bind %s (%s): another program has UDP port %d", GroupText(group),
                        strerror(errno), group.port));
  }
  ip_mreqn membership{};
  membership.imr_multiaddr = to.sin_addr;
  membership.imr_ifindex = static_cast<int>(interface.index);
  if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "cannot join %s on interface %s (%s): %s", GroupText(group), interface.name, strerror(errno),
        errno == ENOBUFS ? "raise net.ipv4.igmp_max_memberships"
                         : "the interface does no multicast; choose another by --multicast-interface"));
  }
  return opened;
}

absl::Status CheckMulticast(const DatagramInterface& interface, int fd, const DatagramAddress& group) {
  if ((interface.flags & (IFF_MULTICAST | IFF_LOOPBACK)) == 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("interface %s does no multicast: `ip link set %s multicast on`, or choose another by "
                        "--multicast-interface",
                        interface.name, interface.name));
  }
  // The group has no member yet, so no process receives this.
  const sockaddr_in to = SocketAddress(group.ip, group.port);
  if (sendto(fd, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
             sizeof(to)) == 0 ||
      errno == EAGAIN || errno == EINTR) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "cannot send to %s through interface %s (%s): %s", GroupText(group), interface.name, strerror(errno),
      errno == EPERM ? "a firewall rule of this host forbids it"
                     : "check its routes, or choose another by --multicast-interface"));
}

void DatagramCounters::Watch(int fd) {
  const MutexLock lock(mutex_);
  sockets_.push_back(fd);
}

void DatagramCounters::Unwatch(int fd) {
  const MutexLock lock(mutex_);
  if (std::erase(sockets_, fd) > 0) closed_overruns_ += OverrunsOf(fd);
}

DatagramDrops DatagramCounters::Read() const {
  DatagramDrops drops{.no_receive = no_receive_.load(std::memory_order_relaxed),
                      .refused = refused_.load(std::memory_order_relaxed)};
  const MutexLock lock(mutex_);
  drops.overrun = closed_overruns_;
  for (const int fd : sockets_) drops.overrun += OverrunsOf(fd);
  return drops;
}

}  // namespace nam::fabric::tcp
