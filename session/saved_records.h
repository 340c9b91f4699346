#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/record_access.h"

/// Saves record tables in a file (session/record_file.h): definitions, rows as bytes, and column counters.
///
///     SaveRecords: a file, with a number  the cluster may go on
///     MarkSaved(number)                   the cluster ends, whatever comes: the store has the number
///     LoadRecords at the next start       of the file with the store's number alone, which is then 0
namespace nam::session {

struct SavedTable {
  std::string name;
  uint64_t rows = 0;
};

struct SavedRecords {
  std::vector<SavedTable> tables;
  /// Unreadable tables, which have lost memory.
  std::vector<std::string> lost;
  uint64_t rows = 0;
  uint64_t bytes = 0;     // of the file
  uint64_t checksum = 0;  // RecordFileWriter::checksum
  uint64_t number = 0;    // of the file: random; 0: there is none

  /// Their names in order, with commas.
  std::string TableNames() const;
};

struct SaveOptions {
  /// Allows commits after the snapshot, which are not saved.
  bool allow_later_commits = false;
  /// Called with the progress, about once a megabyte; may be empty.
  std::function<void(uint64_t rows, uint64_t bytes)> progress = {};
};

/// Writes all record tables as of one snapshot, which holds every commit that was acknowledged before the
/// call. Without tables no file is made. FAILED_PRECONDITION: a commit that is under way does not end, or
/// commits follow the snapshot, and `allow_later_commits` is false. RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path, const SaveOptions& options = {});

/// Tells the catalog durably that this file has the rows, and no other. 0: none has. `closed_by`: the sole
/// client (session/sole_client.h) that has saved them; ABORTED if the catalog does not keep others out for it
/// any more.
absl::Status MarkSaved(catalog::Client& catalog, uint64_t number, MemberId closed_by = {});

/// Recreates the tables, parents before children, with their indexes and rows, and marks that no file has
/// them any more. NOT_FOUND: there is no file; FAILED_PRECONDITION: it is another cluster's, or not the one
/// that MarkSaved has named; DATA_LOSS: it is damaged. An error leaves no table behind.
absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

/// Checks the whole file. Returns only its bytes, checksum and, of record tables, number. DATA_LOSS: it is
/// damaged.
absl::StatusOr<SavedRecords> CheckSavedRecords(const std::string& path);

/// Copies the file for a cluster on another store, which may then load it.
absl::Status CopySavedRecords(const std::string& from, const std::string& to, uint64_t store,
                              const std::string& cluster);

}  // namespace nam::session
