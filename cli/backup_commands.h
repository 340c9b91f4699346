#pragma once

#include <string>

#include "localcluster/connect.h"

namespace nam::cli {

struct BackupCommandOptions {
  ClusterOptions cluster;
  std::string directory;
  double wait_s = 60;
};

struct RestoreCommandOptions {
  std::string directory;  // of the backup
  std::string state_dir;  // empty: DefaultStateDirectory()
  std::string data_directory;
  std::string fabric;  // empty: that of the former cluster
};

/// Backs up all tables of a running cluster into a directory; returns the exit code.
int RunBackup(const BackupCommandOptions& options);
/// Makes a local cluster's data directory from a backup, for `nam up`; returns the exit code. No cluster may
/// run there.
int RunRestore(const RestoreCommandOptions& options);

}  // namespace nam::cli
