#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/tcp/datagram_wire.h"

/// UDP sockets, IPv4: non-blocking, close-on-exec, with the largest buffers that the system allows.
namespace nam::fabric::tcp {

/// The interface that a process uses for datagrams in both directions.
struct DatagramInterface {
  std::string name;
  unsigned index = 0;
  uint32_t ip = 0;     // host byte order
  unsigned flags = 0;  // IFF_…
};
/// Picks the interface `multicast_interface` (a name or an address), else that of `host`, else the loopback.
/// FAILED_PRECONDITION if no interface has that name, or it has no IPv4 address.
absl::StatusOr<DatagramInterface> FindDatagramInterface(const FabricOptions& options);

/// `ip` and `port` in host byte order.
sockaddr_in SocketAddress(uint32_t ip, uint16_t port);

/// Opens a socket on a free port of the interface, which also sends to groups.
absl::StatusOr<UniqueFd> OpenDatagramSocket(const DatagramInterface& interface, int multicast_ttl);
uint16_t DatagramPort(int fd);
/// Opens a socket bound to the group, as a member of it. FAILED_PRECONDITION names the obstacle.
absl::StatusOr<UniqueFd> OpenMemberSocket(const DatagramInterface& interface, const DatagramAddress& group);
/// Checks that the socket can send to the group. FAILED_PRECONDITION names the obstacle, with a hint.
absl::Status CheckMulticast(const DatagramInterface& interface, int fd, const DatagramAddress& group);

/// Counts dropped datagrams over all queue pairs of a fabric. Any thread.
class DatagramCounters {
 public:
  void AddNoReceive(uint64_t count) { no_receive_.fetch_add(count, std::memory_order_relaxed); }
  void AddRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts the socket's overruns until Unwatch, which must precede its close.
  void Watch(int fd);
  void Unwatch(int fd);
  DatagramDrops Read() const;

 private:
  std::atomic<uint64_t> no_receive_{0};
  std::atomic<uint64_t> refused_{0};
  mutable Mutex mutex_;
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
  uint64_t closed_overruns_ ABSL_GUARDED_BY(mutex_) = 0;  // of closed sockets
};

}  // namespace nam::fabric::tcp
