#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "session/session.h"
#include "tests/random_joins/draw.h"

namespace nam::testing {

/// The size of a cluster and of its resources.
struct ClusterShape {
  fabric::Kind fabric = fabric::Kind::kShm;
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 2;                    // of each compute server
  uint64_t compute_memory_bytes = 0;  // of each server, for all queries
  uint64_t first_attempt_bytes = 0;   // what an attempt gets before it asks for more
  bool always_by_parts = false;       // groups go by parts even if they are few

  static ClusterShape Drawn(Draw& draw, fabric::Kind fabric);
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

/// A setting of the session, and values to draw from; a value that is listed twice is twice as likely.
struct DrawnSetting {
  const char* name;
  std::vector<const char*> values;
};
/// The settings that choose algorithms, bound their memory and distribute their work: a case draws them all.
const std::vector<DrawnSetting>& DrawnSettings();

}  // namespace nam::testing
