#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "catalog/client.h"

namespace nam::computeserver {

struct ComputeServerOptions {
  catalog::ClientOptions catalog;  // its address, and the cluster's secret
  int threads = 1;                 // per attempt
  /// The bytes that all queries together may hold; 0: half of the host's.
  uint64_t memory_bytes = 0;
  std::string control_listen_address = "127.0.0.1:0";
  /// Empty: chosen by the fabric's kind, as for memory servers.
  std::string fabric_listen_address;
  std::string advertised_host;
  /// FabricOptions' of the same names.
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  /// The part of memory_bytes that an attempt begins with, unless its settings allow less. It takes more as
  /// long as there is some; most attempts need no more.
  uint64_t first_memory_bytes = uint64_t{16} << 20;
  /// Attempts that run at a time, each with `threads` threads, and those that wait.
  size_t running_max = 32;
  size_t waiting_max = 64;
  /// For tests: where a plan has parts, groups always go by them.
  bool always_by_parts = false;
  /// The time in microseconds for which an unread result may hold resources that other attempts wait for.
  int64_t standing_us_max = 30'000'000;
  /// Runs once, on a thread of the server, when the cluster has given it up.
  std::function<void(absl::Status)> on_lost;
};

/// The compute-server process: receives attempts of plans, streams the data from memory servers, and leaves
/// partial results in registered memory for the coordinator to READ, whole or in windows. It keeps no state
/// that a query depends on. Owned by main(); thread-safe.
class ComputeServer {
 public:
  static absl::StatusOr<std::unique_ptr<ComputeServer>> Start(const ComputeServerOptions& options);
  virtual ~ComputeServer() = default;

  virtual MemberId id() const = 0;
  virtual std::string control_address() const = 0;
  virtual std::string fabric_address() const = 0;
  /// The load of the server by queries.
  struct Load {
    uint64_t memory_used_bytes = 0;
    size_t waiting = 0;    // calls
    size_t open = 0;       // attempts whose results leave in windows
    bool results = false;  // some are stored
    bool idle() const { return memory_used_bytes == 0 && waiting == 0 && open == 0; }
  };
  virtual Load load() = 0;
  /// Leaves the cluster. Cancels queries at the deadline, or as soon as only their clients, which do not
  /// read, hold them up.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace nam::computeserver
