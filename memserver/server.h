#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "catalog/client.h"
#include "fabric/fabric.h"

namespace nam::memserver {

struct MemoryServerOptions {
  catalog::ClientOptions catalog;  // the catalog's address, and the cluster's secret
  uint64_t memory_bytes = 0;       // a multiple of 4 KiB
  uint64_t region_bytes = uint64_t{64} << 20;
  /// The part of memory_bytes reserved for queries' scratch memory, which loads cannot take. A multiple of 4
  /// KiB. Default: a quarter, or none if memory_bytes is below 16 MiB.
  std::optional<uint64_t> scratch_bytes;
  std::string control_listen_address = "127.0.0.1:0";
  /// Empty: the fabric picks one (tcp: a free port of the control address's host).
  std::string fabric_listen_address;
  /// The host that peers use instead of the listen address's. Empty: the same host, or this host's name if
  /// listening on every address.
  std::string advertised_host;
  /// Directory for sealed allocations (memserver/data_directory.h), read at the start. Empty: none.
  std::string data_directory;
  bool huge_pages = true;
  bool populate = false;  // touch pages when a region is made, not at first use
  int nic_threads = 1;
  /// As in FabricOptions.
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  /// Runs once, on a thread of the server, when the cluster has given it up. Its memory is lost, so the
  /// process should end. Must not destroy the server.
  std::function<void(absl::Status)> on_lost;
};

/// The memory server process: regions and extents, handed out by calls and accessed through the passive
/// fabric. It never looks at the data. Memory is freed only when the catalog says that its allocation is
/// neither a load in progress nor a table, and no peer can write to it any more. With a data directory, each
/// start makes it a new member that adopts the directory's storage id and files
/// (docs/design/data-on-disk.md). Owned by main(); thread-safe.
///
///     loader ── Allocate ─▶ extents, keys ── WRITE (fabric) ─▶ regions ◀─ READ (fabric) ── compute servers
///     catalog ◀── renewal: used, held ────────────┘        ──▶ release: freed, used again
class MemoryServer {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryServer>> Start(const MemoryServerOptions& options);
  virtual ~MemoryServer() = default;

  virtual MemoryServerId id() const = 0;
  /// The server id of remote pointers to memory sealed here: the data directory's storage id, or id() without
  /// one.
  virtual MemoryServerId storage() const = 0;
  virtual std::string control_address() const = 0;
  virtual std::string fabric_address() const = 0;
  /// Includes leaving memory.
  virtual uint64_t used_bytes() const = 0;
  /// The part of used_bytes that is scratch memory.
  virtual uint64_t scratch_used_bytes() const = 0;
  /// The most bytes that can be handed out.
  virtual uint64_t capacity_bytes() const = 0;
  /// Leaves the cluster and stops serving; cancels calls in progress at the deadline.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace nam::memserver
