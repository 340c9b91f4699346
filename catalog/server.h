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
  uint16_t lease_port = 0;  // where renewals are heard, on the same host; 0 picks one
  std::string store_path;   // one file, made if it is not there; or kStoreInMemory
  /// Of a new store. An existing one keeps its own: a name that differs is refused (empty: any), and
  /// so is another fabric.
  std::string cluster_name = "nam";
  fabric::Kind fabric = fabric::Kind::kShm;
  std::string secret;
  uint32_t lease_ms = kDefaultLeaseMs;
  /// How long a memory server whose lease has ended may come back.
  uint32_t bury_after_ms = kDefaultBuryAfterMs;
  std::string timestamps = kDefaultTimestamps;  // or bitvector; of transactions, from the first one on
  bool encrypt = false;                         // tcp: the data plane of all members
  /// Serve though the members know a newer store (ServiceOptions of the same name).
  bool accept_older_store = false;
  Clock* clock = &RealClock();  // of the leases
  /// Where the ids of stores and epochs come from; the operating system's if there is none.
  std::function<uint64_t()> random;
  ControlPlane* control_plane = &GrpcControlPlane();
  fabric::Fabric* fabric_of_threads = nullptr;  // null: the operating system's threads
};

/// The catalog's process: store, service and the server around it. Owned by main(); thread-safe.
class CatalogServer {
 public:
  static absl::StatusOr<std::unique_ptr<CatalogServer>> Start(const CatalogServerOptions& options);
  virtual ~CatalogServer() = default;

  /// host:port
  virtual std::string address() const = 0;
  virtual std::string lease_address() const = 0;
  virtual const ClusterIdentity& identity() const = 0;
  /// Calls under way are cancelled at the deadline. The store is closed with the object.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace nam::catalog
