#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "localcluster/connect.h"

namespace nam::cli {

struct UpOptions {
  std::string state_dir;       // empty: DefaultStateDirectory()
  std::string data_directory;  // as DataDirectoryOf (localcluster/data_layout.h) takes it
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  uint64_t memory_bytes = 0;  // of each memory server; 0: DefaultMemory
  std::optional<uint64_t> scratch_bytes;
  int threads = 0;  // of each compute server; 0: the processors shared out
  std::string timestamps = "leased";
  bool encrypt = false;
  std::string log_level = "info";
  double bury_after_s = 60;  // how long a memory server whose lease has ended may come back
};

struct DownOptions {
  std::string state_dir;
  bool discard_records = false;  // stop even if record tables are not saved
};

struct StatusOptions {
  ClusterOptions cluster;
  std::string format = "table";
};

/// A local cluster in the background, run by a supervisor:
///
///     nam up ──▶ nam supervise (own session, holds DIR/lock) ──▶ catalog, memory and compute servers
///        ◀── READY ──┘                                            end with the supervisor
int RunUp(const UpOptions& options);
/// Runs the supervisor itself; not for users.
int RunSupervise(const UpOptions& options);
/// Stops the local cluster, or cleans up after one that was killed.
int RunDown(const DownOptions& options);
/// Prints a cluster's members and tables.
int RunStatus(const StatusOptions& options);

}  // namespace nam::cli
