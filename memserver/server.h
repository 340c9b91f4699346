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
  catalog::ClientOptions catalog;  // where it is, and the cluster's secret
  uint64_t memory_bytes = 0;       // a multiple of 4 KiB
  uint64_t region_bytes = uint64_t{64} << 20;
  /// Of memory_bytes, for queries' scratch memory: loads cannot take it. A multiple of 4 KiB. Nothing: a
  /// quarter, and of less than 16 MiB none.
  std::optional<uint64_t> scratch_bytes;
  std::string control_listen_address = "127.0.0.1:0";
  /// Empty: the fabric picks one (tcp: a free port of the control address's host).
  std::string fabric_listen_address;
  /// Host that peers shall use instead of the one listened on. Empty: the same, or this host's name
  /// when listening on every address.
  std::string advertised_host;
  /// Where what is sealed is kept (memserver/data_directory.h), and read from at the start. Empty: nowhere.
  std::string data_directory;
  bool huge_pages = true;
  bool populate = false;  // touch pages when a region is made, not at first use
  int nic_threads = 1;
  /// FabricOptions' of the same names.
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  /// Runs once, on a thread of the server, when the cluster has given it up: its memory belongs to
  /// nobody, so the process should end. It must not destroy the server.
  std::function<void(absl::Status)> on_lost;
};

/// The memory-server process: regions and extents, served passively by the fabric and handed out by
/// calls; it never looks at the data. Memory is freed only when the catalog says that its allocation is
/// neither a load under way nor a table, and no peer can write to it any more. With a data directory it is a
/// new member each time it starts, and adopts the directory's storage id and what is in its files
/// (docs/design/data-on-disk.md). Owned by main(); thread-safe.
///
///     loader ── Allocate ─▶ extents, keys ── WRITE (fabric) ─▶ regions ◀─ READ (fabric) ── compute servers
///     catalog ◀── renewal: used, held ────────────┘        ──▶ release: freed, used again
class MemoryServer {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryServer>> Start(const MemoryServerOptions& options);
  virtual ~MemoryServer() = default;

  virtual MemoryServerId id() const = 0;
  /// The server id of remote pointers to what is sealed here: that of the data directory, or id() without
  /// one.
  virtual MemoryServerId storage() const = 0;
  virtual std::string control_address() const = 0;
  virtual std::string fabric_address() const = 0;
  /// Also what drains.
  virtual uint64_t used_bytes() const = 0;
  /// Of it, queries' scratch memory.
  virtual uint64_t scratch_used_bytes() const = 0;
  /// The most that is handed out.
  virtual uint64_t capacity_bytes() const = 0;
  /// Leaves the cluster and stops serving; calls under way are cancelled at the deadline.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace nam::memserver
