#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "backup/fresh_directory.h"
#include "backup/manifest.h"
#include "catalog/attachment.h"

/// Writes all tables of a running cluster, as of one moment, into a directory:
///
///     manifest                         describes the backup (backup/manifest.h); written last, so a
///                                      directory without it is no backup
///     catalog.saved                    columnar tables, views and schemas (session/record_file.h)
///     records.saved                    record tables; absent if there are none
///     storage-3/allocation-17.sealed   memory of columnar tables (memserver/sealed_file.h)
///     …
namespace nam::backup {

struct BackupOptions {
  std::string directory;         // not there, or empty
  std::string program;           // that makes it, for people
  int64_t wait_us = 60'000'000;  // for loads that are under way
  OnProgress progress = {};
};

/// Backs up all tables into options.directory, and returns the manifest:
///
///     catalog quiet: no load begins, no table is made, changed or dropped │ loads and changes go on
///     descriptions ─▶ pin sealed memory ─▶ record tables at one snapshot ─┼▶ READ it into files ─▶ manifest
///
/// The moment is that of the snapshot: columnar tables do not change while the catalog is quiet, and what is
/// sealed and pinned does not change at all. This thread's Interruption ends it. After an error nothing of
/// the backup is left, and nothing of the cluster has changed. FAILED_PRECONDITION: a table has lost memory.
/// RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<Manifest> WriteBackup(catalog::Attachment& attachment, const BackupOptions& options);

}  // namespace nam::backup
