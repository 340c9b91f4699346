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

  /// Their names in order, with commas.
  std::string TableNames() const;
};

struct SaveOptions {
  /// Allows commits after the snapshot, which are not saved.
  bool allow_later_commits = false;
  /// Called with the progress, about once a megabyte; may be empty.
  std::function<void(uint64_t rows, uint64_t bytes)> progress = {};
};

/// Writes all record tables as of one snapshot, which holds every commit that was acknowledged before the call.
/// Without tables no file is made. FAILED_PRECONDITION: a commit that is under way does not end, or commits
/// follow the snapshot, and `allow_later_commits` is false. RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path, const SaveOptions& options = {});

/// Recreates the tables, parents before children, with their indexes and rows. NOT_FOUND: there is no file;
/// FAILED_PRECONDITION: it is another cluster's; DATA_LOSS: it is damaged. An error leaves no table behind.
absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

/// Checks the whole file. Returns only its bytes and checksum. DATA_LOSS: it is damaged.
absl::StatusOr<SavedRecords> CheckSavedRecords(const std::string& path);

/// Copies the file for a cluster on another store, which may then load it.
absl::Status CopySavedRecords(const std::string& from, const std::string& to, uint64_t store,
                              const std::string& cluster);

}  // namespace nam::session
