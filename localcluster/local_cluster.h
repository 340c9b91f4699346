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
  std::string executable;  // that servers run; empty: FindExecutable("nam")
  std::string directory;   // see state_directory.h; made by the caller
  /// See data_layout.h; for the servers, which work in `directory`. Empty: all ends with the cluster.
  std::string data_directory;
  std::string name = "local";
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  uint64_t memory_bytes = 1ULL << 30;     // of each memory server
  std::optional<uint64_t> scratch_bytes;  // of that, for queries' scratch memory; nothing: a quarter
  int threads = 0;                        // of each compute server; 0: the host's processors shared out
  std::string timestamps = "leased";      // or bitvector
  bool encrypt = false;                   // tcp: the data plane
  std::string log_level = "info";         // of all servers
  double bury_after_s = 60;               // how long a memory server whose lease has ended may come back
  int64_t start_timeout_ms = 120'000;
  int64_t stop_timeout_ms = 10'000;  // for each of the three kinds of servers
  RestartPolicy restart;             // for who calls Tend
};

/// INVALID_ARGUMENT for numbers of servers out of bounds.
absl::Status Validate(const LocalClusterOptions& options);

/// One catalog, memory servers and compute servers on this host, as child processes that end with the
/// thread that started them. Used by that thread alone.
///
/// With a data directory all columnar tables that were there are there again.
///
///     secret ─▶ catalog ─▶ READY address ─▶ all memory and compute servers at once ─▶ READY each
class LocalCluster {
 public:
  /// CANCELLED when `interrupt_fd` becomes readable; nothing is left running then.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options,
                                                             int interrupt_fd);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const std::string& catalog_address() const { return catalog_address_; }
  std::string secret_file() const { return SecretFile(options_.directory); }
  /// The catalog first.
  std::vector<Process*> processes() const;
  /// Looks after the servers: one that has ended is started again (RestartPolicy), the catalog on its store
  /// and its address, and as often as it takes, since without it all that memory servers hold would be lost;
  /// a memory server under a new id, with what its data directory has, if it has one. What has happened, for
  /// the log. To be called when one of wait_fds() is readable, and at wake(). Without it a server that has
  /// ended stays away.
  std::vector<std::string> Tend();
  std::vector<int> wait_fds() const;
  Deadline wake() const;
  /// Starts more compute servers, as Start did, and waits until they are ready: their processes. If one does
  /// not get ready, none of them stays. INVALID_ARGUMENT for more than a local cluster may have.
  absl::StatusOr<std::vector<Process*>> AddComputeServers(int count, int interrupt_fd);
  /// Stops the youngest that run: their ids. FAILED_PRECONDITION if none would be left. One that does not end
  /// in time is killed: DEADLINE_EXCEEDED, and what it had begun of queries is done again by others.
  absl::StatusOr<std::vector<std::string>> RemoveComputeServers(int count);
  int running_compute_servers() const;
  int running_memory_servers() const;
  /// Compute servers, then memory servers, then the catalog, so that everybody can take leave.
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
  /// Of compute servers: their places are free for others.
  void ForgetGivenUp();
  /// Until they have said READY.
  absl::Status AwaitStarted(const std::vector<ServerSlot*>& started, int interrupt_fd);
  /// The catalog's first.
  std::vector<ServerSlot*> slots() const;

  const LocalClusterOptions options_;
  const StateDirectory directory_;
  std::string catalog_address_;
  std::unique_ptr<ServerSlot> catalog_;
  std::vector<std::unique_ptr<ServerSlot>> memory_servers_;
  std::vector<std::unique_ptr<ServerSlot>> compute_servers_;  // the oldest first
  int compute_threads_ = 1;
  uint64_t compute_memory_bytes_ = 0;
  int compute_servers_started_ = 0;  // names are used once
};

/// The id that a server's READY line told.
std::string IdOf(const Process& server);

/// Memory of each of `memory_servers` for tables of so many bytes and what queries keep beside them.
uint64_t MemoryForTables(double bytes, int memory_servers);

}  // namespace nam
