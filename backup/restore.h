#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "backup/fresh_directory.h"
#include "backup/manifest.h"

/// A local cluster's data directory (localcluster/data_layout.h) made of a backup. No cluster takes part.
namespace nam::backup {

struct RestoreOptions {
  std::string directory;       // the backup's
  std::string data_directory;  // not there, or empty
  std::string fabric;          // the new cluster's; empty: the former one's
  OnProgress progress = {};
};

/// Makes the data directory of a new cluster from a backup, and returns the backup's manifest:
///
///     catalog.db.new ─▶ check every file ─▶ its tables ─▶ memory-1 …: sealed files ─▶ records.saved ─▶
///     catalog.db
///
/// catalog.db.new is made first and renamed last: no cluster starts on a directory that has it, whenever the
/// restore is killed. The new cluster is distinct from the old one: its store has a new id, which its files
/// carry. It has a memory server for each one in the backup, with the same storage id, so that remote
/// pointers of tables stay valid. This thread's Interruption ends the work. After an error nothing of it is
/// left. DATA_LOSS names a damaged or missing file. RESOURCE_EXHAUSTED: the disk is full.
/// FAILED_PRECONDITION: another restore into the directory was interrupted, or is under way.
absl::StatusOr<Manifest> Restore(const RestoreOptions& options);

/// Reads the backup's manifest. FAILED_PRECONDITION: it is none, or was interrupted; DATA_LOSS: it is
/// damaged.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory);

}  // namespace nam::backup
