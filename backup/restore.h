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

///     every file checked ─▶ catalog.db.new: tables ─▶ memory-1 …: sealed files ─▶ records.saved ─▶
///     catalog.db (DATA_LOSS names one that is damaged or missing)
///
/// The new cluster is another one than the former: its store has an id of its own, which its files say. It
/// has a memory server for each one of the backup, with its storage id, for what tables point to. This
/// thread's Interruption ends it. After an error nothing of it is left. RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<Manifest> Restore(const RestoreOptions& options);

/// Reads the backup's manifest. FAILED_PRECONDITION: it is none, or was interrupted; DATA_LOSS: it is
/// damaged.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory);

}  // namespace nam::backup
