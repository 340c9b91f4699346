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

/// All tables of a cluster that runs, into a directory.
int RunBackup(const BackupCommandOptions& options);
/// A local cluster's data directory of a backup, for `nam up`. No cluster runs there.
int RunRestore(const RestoreCommandOptions& options);

}  // namespace nam::cli
