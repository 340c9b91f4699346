#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "localcluster/process.h"
#include "localcluster/server_slot.h"
#include "localcluster/state_directory.h"

namespace nam {

struct LocalClusterOptions {
  std::string executable;  // the servers' program; empty: FindExecutable("nam")
  std::string directory;   // see state_directory.h; created by the caller
  /// See data_layout.h; the servers' paths are relative to `directory`. Empty: all data end with the cluster.
  std::string data_directory;
  std::string name = "local";
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  uint64_t memory_bytes = 1ULL << 30;     // of each memory server
  std::optional<uint64_t> scratch_bytes;  // the part for queries' scratch memory; empty: a quarter
  int threads = 0;                        // of each compute server; 0: the host's processors shared out
  std::string timestamps = "leased";      // or bitvector
  bool encrypt = false;                   // tcp: the data plane
  std::string log_level = "info";         // of all servers
  double bury_after_s = 60;               // how long a suspect memory server may come back
  int64_t start_timeout_ms = 120'000;
  int64_t stop_timeout_ms = 10'000;  // for each of the three kinds of servers
  RestartPolicy restart;             // for callers of Tend
};

/// INVALID_ARGUMENT if a number of servers is out of range.
absl::Status Validate(const LocalClusterOptions& options);

/// One catalog, memory servers and compute servers on this host, as child processes that end with the thread
/// that started them. Only that thread may use it. A data directory restores all its columnar tables.
///
///     secret ─▶ catalog ─▶ READY address ─▶ all memory and compute servers at once ─▶ READY each
class LocalCluster {
 public:
  /// CANCELLED if `interrupt_fd` becomes readable; no process is left running then.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options,
                                                             int interrupt_fd);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const std::string& catalog_address() const { return catalog_address_; }
  std::string secret_file() const { return SecretFile(options_.directory); }
  /// The catalog comes first.
  std::vector<Process*> processes() const;
  /// Restarts servers that have ended (RestartPolicy), and returns what happened, for the log. The catalog
  /// restarts on its store and its address, as often as needed, since without it all memory servers would
  /// lose their data. A memory server restarts under a new id, with the contents of its data directory, if
  /// any. Must be called when one of wait_fds() is readable, and at wake(); otherwise ended servers stay
  /// away.
  std::vector<std::string> Tend();
  std::vector<int> wait_fds() const;
  Deadline wake() const;
  /// Starts more compute servers, as Start does, and waits until they are ready; returns their processes. If
  /// one fails, all of them are stopped. INVALID_ARGUMENT beyond the limit of a local cluster.
  absl::StatusOr<std::vector<Process*>> AddComputeServers(int count, int interrupt_fd);
  /// Stops the youngest running ones; returns their ids. FAILED_PRECONDITION if none would be left. One that
  /// does not end in time is killed: DEADLINE_EXCEEDED, and other servers repeat its part of the queries.
  absl::StatusOr<std::vector<std::string>> RemoveComputeServers(int count);
  int running_compute_servers() const;
  int running_memory_servers() const;
  /// True once Tend has found that a memory server had ended: what it held of record tables is lost.
  bool lost_memory() const { return lost_memory_; }
  /// Stops compute servers, then memory servers, then the catalog, so that all can leave properly.
  absl::Status Stop();

 private:
  LocalCluster(const LocalClusterOptions& options, StateDirectory directory)
      : options_(options), directory_(std::move(directory)) {}
  absl::Status StartAll(int interrupt_fd);
  absl::StatusOr<std::unique_ptr<ServerSlot>> Launch(const std::string& name,
                                                     std::vector<std::string> arguments,
                                                     const RestartPolicy& restart,
                                                     ServerSlot::Holds holds) const;
  absl::StatusOr<std::unique_ptr<ServerSlot>> LaunchMemoryServer(int number) const;
  absl::Status LaunchComputeServers(int count);
  /// Frees the places of compute servers that were given up.
  void ForgetGivenUp();
  /// Waits until they have printed READY.
  absl::Status AwaitStarted(const std::vector<ServerSlot*>& started, int interrupt_fd);
  /// The catalog's comes first.
  std::vector<ServerSlot*> slots() const;

  const LocalClusterOptions options_;
  const StateDirectory directory_;
  std::string catalog_address_;
  std::unique_ptr<ServerSlot> catalog_;
  std::vector<std::unique_ptr<ServerSlot>> memory_servers_;
  std::vector<std::unique_ptr<ServerSlot>> compute_servers_;  // oldest first
  int compute_threads_ = 1;
  uint64_t compute_memory_bytes_ = 0;
  int compute_servers_started_ = 0;  // names are not reused
  bool lost_memory_ = false;
};

/// The id in a server's READY line.
std::string IdOf(const Process& server);

/// Memory for each of `memory_servers`, for `bytes` of tables and the queries' scratch memory.
uint64_t MemoryForTables(double bytes, int memory_servers);

}  // namespace nam
