#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "session/session.h"

namespace nam::testing {

/// The size of a cluster and of its resources.
struct ClusterShape {
  fabric::Kind fabric = fabric::Kind::kShm;
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 2;                             // of each compute server
  uint64_t memory_bytes = uint64_t{96} << 20;  // of each memory server; half of it is scratch memory
  uint64_t region_bytes = uint64_t{4} << 20;
  uint64_t compute_memory_bytes = 0;  // of each server, for all queries
  uint64_t first_attempt_bytes = 0;   // what an attempt gets before it asks for more
  bool always_by_parts = false;       // groups go by parts even if they are few

  std::string Describe() const;
};

/// A cluster over any fabric, all of it in this process, with one session.
class TestedCluster {
 public:
  static absl::StatusOr<std::unique_ptr<TestedCluster>> Start(const ClusterShape& shape);
  virtual ~TestedCluster() = default;

  virtual catalog::Attachment& attachment() = 0;
  virtual session::Session& session() = 0;
  /// Ends the session as a client that leaves, and waits until no memory server has a byte of scratch memory
  /// in use, or for ten seconds. Returns what is then left.
  virtual uint64_t ScratchLeftBehind() = 0;
};

/// The fabrics that this machine has: sim, shm and tcp everywhere, verbs with a device.
std::vector<fabric::Kind> FabricsHere();

}  // namespace nam::testing
