#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "bench/bench_server.h"
#include "bench/fabric_bound.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"

namespace nam::bench {

struct TestbedOptions {
  fabric::Kind kind = fabric::Kind::kShm;
  std::string generation = "fdr";         // sim
  std::string rdma;                       // verbs: the client's device
  std::string server_rdma;                // verbs: the server's
  std::string server_host = "127.0.0.1";  // where the server listens
  bool encrypt = false;                   // tcp
  uint64_t region_bytes = uint64_t{64} << 20;
  /// Where the server runs, so that measurements cross processes as in a cluster. In `sim` there is one
  /// process.
  bool own_process = true;
};

/// The environment of a benchmark: a client's fabric, and a server on another one. In `sim` they are on hosts
/// of their own, and the thread that opens the testbed drives the world. Its waits take virtual time.
class Testbed {
 public:
  /// Before any thread of this process.
  static absl::StatusOr<std::unique_ptr<Testbed>> Open(const TestbedOptions& options);
  ~Testbed();

  fabric::Fabric& client() { return *client_; }
  /// Opens another client; in `sim` on its own host. Must be destroyed before the testbed.
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenClient();
  const ServerAddress& server_address() const { return address_; }
  /// Only without a process of its own.
  BenchServer& server() { return *server_; }
  /// The provider's yardstick, if there is one. Used while the lanes live.
  std::optional<FabricBound> BoundOf(const Lanes& lanes);

 private:
  explicit Testbed(const TestbedOptions& options);
  absl::StatusOr<ServerAddress> StartServer();
  absl::StatusOr<ServerAddress> ForkServer();
  [[noreturn]] void ServeParent(int parent);
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenFabric(const std::string& simulated_host,
                                                             const std::string& host,
                                                             const std::string& rdma);

  const TestbedOptions options_;
  const std::string secret_;
  fabric::sim::NicModel nic_;                // in `sim`
  std::optional<fabric::sim::World> world_;  // the same
  int clients_ = 0;
  ServerAddress address_;
  UniqueFd server_process_;  // it ends when this is closed
  pid_t server_pid_ = -1;
  std::unique_ptr<fabric::Fabric> server_fabric_;
  std::unique_ptr<BenchServer> server_;
  std::unique_ptr<fabric::Fabric> client_;
};

}  // namespace nam::bench
