#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "backup/fresh_directory.h"
#include "backup/manifest.h"
#include "catalog/attachment.h"

/// All tables of a cluster that runs, as they are at one moment, in a directory:
///
///     manifest                         what it is (backup/manifest.h), written last: without it there is no
///     backup catalog.saved                    columnar tables, views and schemas (session/record_file.h)
///     records.saved                    record tables; not there if there is none
///     storage-3/allocation-17.sealed   memory of columnar tables (memserver/sealed_file.h)
///     …
namespace nam::backup {

struct BackupOptions {
  std::string directory;         // not there, or empty
  std::string program;           // that makes it, for people
  int64_t wait_us = 60'000'000;  // for loads that are under way
  OnProgress progress = {};
};

///     catalog    quiet: no load begins, no table is made, changed or dropped
///                ├ descriptions ─ pin sealed memory ─ record tables at one snapshot ┤ loads go on, rows are
///                changed
///     client                                                                        ├ READ sealed memory ─▶
///     files ─ manifest
///
/// The moment is that of the snapshot: columnar tables do not change while the catalog is quiet, and what is
/// sealed and pinned does not change at all. This thread's Interruption ends it. After an error nothing of
/// the backup is left, and nothing of the cluster has changed. FAILED_PRECONDITION: a table has lost memory.
/// RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<Manifest> WriteBackup(catalog::Attachment& attachment, const BackupOptions& options);

}  // namespace nam::backup
