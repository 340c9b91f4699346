#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "catalog/attach_over_fabric.h"
#include "catalog/attachment.h"
#include "catalog/server.h"
#include "catalog/simulated_control_plane.h"
#include "computeserver/server.h"
#include "fabric/sim/world.h"
#include "memserver/server.h"
#include "session/session.h"

namespace nam::simulation {

/// The secret of the clusters of simulated worlds.
inline constexpr char kClusterSecret[] = "simulated";

/// The base of a simulated process: a host, the fabric opened there, and the control plane over it.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Open(fabric::sim::World& world,
                                                       catalog::SimulatedControlNetwork& network,
                                                       const std::string& host);

  fabric::sim::ProcessId id() const { return id_; }
  fabric::Fabric& fabric() { return fabric_; }
  catalog::ControlPlane& control_plane() { return *control_plane_; }
  /// Passes the fabric to the process's objects, once; they must end before this object.
  catalog::FabricOpener Opener();

 private:
  Process(fabric::sim::World& world, catalog::SimulatedControlNetwork& network,
          std::unique_ptr<fabric::Fabric> fabric);

  std::unique_ptr<fabric::Fabric> owned_;  // until Opener's result is called
  fabric::Fabric& fabric_;
  const fabric::sim::ProcessId id_;
  const std::unique_ptr<catalog::ControlPlane> control_plane_;
};

struct ClusterOptions {
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 2;  // per compute server
  /// Compute server i is on the host of memory server i, `server-i`: they share its card.
  bool shared_hosts = false;
  uint64_t memory_bytes = uint64_t{64} << 20;
  uint64_t first_memory_bytes = 0;  // for memory-0; 0: like the others
  uint64_t region_bytes = uint64_t{1} << 20;
  std::optional<uint64_t> scratch_bytes;              // per memory server; empty: a quarter
  uint64_t compute_memory_bytes = uint64_t{4} << 30;  // per compute server, for all queries
  // For compute servers, as in computeserver::ComputeServerOptions.
  uint64_t first_attempt_bytes = uint64_t{16} << 20;
  size_t running_max = 32, waiting_max = 64;
  uint32_t lease_ms = 3'000;
  bool always_by_parts = false;  // groups go by parts even if they are few
  uint32_t bury_after_ms = catalog::kDefaultBuryAfterMs;
  std::string timestamps = catalog::kDefaultTimestamps;
  /// A file, for a catalog that can be killed; empty: in memory.
  std::string catalog_store;
};

/// A client of the cluster on its own host: process, membership, session.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Attach(fabric::sim::World& world,
                                                        catalog::SimulatedControlNetwork& network,
                                                        const std::string& host,
                                                        const std::string& catalog_address);

  fabric::sim::ProcessId process() const { return process_->id(); }
  fabric::Fabric& fabric() { return process_->fabric(); }
  catalog::Attachment& attachment() { return *attachment_; }
  session::Session& session() { return *session_; }

 private:
  std::unique_ptr<Process> process_;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<session::Session> session_;
};

/// A whole cluster in a simulated world: the real servers, each a process on its own host (`catalog`,
/// `memory-0`, `compute-0`, …; or see shared_hosts). Servers may be killed and restarted, by one thread at a
/// time.
class Cluster {
 public:
  enum class Role { kMemory, kCompute };

  static absl::StatusOr<std::unique_ptr<Cluster>> Start(fabric::sim::World& world,
                                                        const ClusterOptions& options);
  ~Cluster();

  fabric::sim::World& world() { return world_; }
  const ClusterOptions& options() const { return options_; }
  absl::StatusOr<std::unique_ptr<Client>> NewClient(const std::string& host);
  /// A process that the caller plays itself, and its access to the catalog.
  absl::StatusOr<std::unique_ptr<Process>> NewProcess(const std::string& host);
  catalog::ClientOptions CatalogOf(Process& process) const;

  /// Servers of a role are numbered from 0. A host outlives its processes.
  int count(Role role) const { return static_cast<int>(slots(role).size()); }
  std::string HostOf(Role role, int number) const { return slots(role)[static_cast<size_t>(number)].host; }
  bool Alive(Role role, int number) const;
  fabric::sim::ProcessId ProcessOf(Role role, int number) const {
    return slots(role)[static_cast<size_t>(number)].process->id();
  }
  /// Ends the server's process at once, or its whole host, which peers notice later.
  void Kill(Role role, int number, bool whole_host);
  /// Lets a compute server finish its work and leave; Restart brings it back.
  void Leave(int number);
  /// The number of servers that ended themselves after the cluster gave them up, as `nam memserver` does.
  int given_up() const { return given_up_; }
  /// Removes a killed server and restarts it empty. UNAVAILABLE if it cannot join yet: retry later.
  absl::Status Restart(Role role, int number);

  /// The catalog's process; its store outlives it.
  fabric::sim::ProcessId catalog_process() const { return catalog_process_->id(); }
  void KillCatalog(bool whole_host);
  /// Restarts it at its address, on its store.
  absl::Status RestartCatalog();

  /// The number of memory servers killed: tables loaded before the last time may have lost blocks.
  int memory_deaths() const { return memory_deaths_; }
  /// The memory held per server, as words: `memory-0:4096`.
  std::string Holdings() const;
  /// Bytes handed out by live memory servers.
  uint64_t UsedBytes() const;
  /// The part of UsedBytes() that is scratch memory.
  uint64_t ScratchUsedBytes() const;
  /// True if no live compute server holds anything of a query.
  bool Idle() const;

 private:
  struct Slot {
    std::string host;
    std::unique_ptr<Process> process;
    std::unique_ptr<memserver::MemoryServer> memory;
    std::unique_ptr<computeserver::ComputeServer> compute;
    bool host_down = false;
  };
  Cluster(fabric::sim::World& world, const ClusterOptions& options)
      : world_(world), options_(options), network_(world) {}
  absl::Status StartCatalog();
  absl::Status StartServer(Role role, Slot& slot);
  std::vector<Slot>& slots(Role role) { return role == Role::kMemory ? memory_ : compute_; }
  const std::vector<Slot>& slots(Role role) const { return role == Role::kMemory ? memory_ : compute_; }

  fabric::sim::World& world_;
  const ClusterOptions options_;
  catalog::SimulatedControlNetwork network_;
  RandomStream catalog_ids_{1};
  std::unique_ptr<Process> catalog_process_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::string catalog_address_;  // set at the first start
  bool catalog_host_down_ = false;
  std::vector<Slot> memory_, compute_;
  int memory_deaths_ = 0;
  int given_up_ = 0;
};

}  // namespace nam::simulation
