#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "bench/bench_server.h"
#include "bench/command.h"
#include "bench/fabric_lane.h"
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

/// The common parts of `nam bench fabric`, `prefetch` and `multicast`.
class TestbedCommand : public Command {
 public:
  bool has_charts() const override { return true; }
  bool simulated() const override { return fabric_ == "sim"; }
  absl::Status Check() override;
  absl::StatusOr<Report> Measure(Run& run) final;

  int repeat() const { return repeat_; }
  int64_t round_ns() const { return int64_t{round_ms_} * 1'000'000; }

 protected:
  TestbedCommand(std::string name, std::string help, int repeat)
      : Command(std::move(name), std::move(help)), repeat_(repeat) {}
  /// `own`, and the common options.
  std::vector<Option> WithTestbed(std::vector<Option> own);
  virtual absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) = 0;

  TestbedOptions testbed_;

 private:
  std::string fabric_ = "shm";
  int repeat_;
  int round_ms_ = 0;  // 0: the fabric's default
};

}  // namespace nam::bench
