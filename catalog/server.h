#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "catalog/grpc_control_plane.h"
#include "catalog/service.h"
#include "fabric/fabric.h"

namespace nam::catalog {

struct CatalogServerOptions {
  std::string listen_address = "127.0.0.1:0";
  uint16_t lease_port = 0;  // port for renewals, on the same host; 0 picks one
  std::string store_path;   // one file, created if missing; or kStoreInMemory
  /// The name and the fabric of a new store. An existing store keeps its own and refuses a different fabric
  /// or name; an empty name matches any.
  std::string cluster_name = "nam";
  fabric::Kind fabric = fabric::Kind::kShm;
  std::string secret;
  uint32_t lease_ms = kDefaultLeaseMs;
  /// The time after the end of its lease within which a memory server may come back before it is buried.
  uint32_t bury_after_ms = kDefaultBuryAfterMs;
  std::string timestamps = kDefaultTimestamps;  // or bitvector; used from the first transaction on
  bool encrypt = false;                         // tcp: the data plane of all members
  /// Serves although members know a newer store (see ServiceOptions).
  bool accept_older_store = false;
  Clock* clock = &RealClock();  // of the leases
  /// Source of the ids of stores and epochs; empty: the operating system.
  std::function<uint64_t()> random;
  ControlPlane* control_plane = &GrpcControlPlane();
  fabric::Fabric* fabric_of_threads = nullptr;  // null: the operating system's threads
};

/// The catalog's process: store, service and server. Owned by main(); thread-safe.
class CatalogServer {
 public:
  static absl::StatusOr<std::unique_ptr<CatalogServer>> Start(const CatalogServerOptions& options);
  virtual ~CatalogServer() = default;

  /// host:port
  virtual std::string address() const = 0;
  virtual std::string lease_address() const = 0;
  virtual const ClusterIdentity& identity() const = 0;
  /// Cancels calls in progress at the deadline. Destruction closes the store.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace nam::catalog
