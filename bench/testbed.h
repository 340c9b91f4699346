#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fabric_bound.h"
#include "bench/server_end.h"
#include "fabric/fabric.h"

namespace nam::bench {

struct TestbedOptions {
  fabric::Kind kind = fabric::Kind::kShm;
  std::string generation = "fdr";         // sim
  std::string rdma;                       // verbs: the client's device
  std::string server_rdma;                // verbs: the server's
  std::string server_host = "127.0.0.1";  // where the server listens
  bool encrypt = false;                   // tcp
  uint64_t region_bytes = uint64_t{64} << 20;
  std::string log_file;  // for the server's process
};

/// The environment of a benchmark: a client's fabric, and a server at its other end. On real fabrics the
/// server is a separate process, so that measurements cross processes; in `sim` it is another simulated host.
class Testbed {
 public:
  static absl::StatusOr<std::unique_ptr<Testbed>> Open(const TestbedOptions& options);
  virtual ~Testbed() = default;

  virtual fabric::Fabric& client() = 0;
  /// Opens another client; in `sim` on its own host. Must be destroyed before the testbed.
  virtual absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenClient() = 0;
  virtual ServerEnd& server() = 0;
  /// The provider's yardstick, if there is one. Used while the lanes live.
  virtual std::optional<FabricBound> BoundOf(const Lanes& lanes) = 0;
};

}  // namespace nam::bench
