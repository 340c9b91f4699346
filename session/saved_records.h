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
  /// Commits behind the snapshot are not saved, and need not be.
  bool others_go_on = false;
  /// Hears of progress, about once a megabyte.
  std::function<void(uint64_t rows, uint64_t bytes)> progress = {};
};

/// Writes all record tables as of one snapshot. Without tables no file is made. FAILED_PRECONDITION: commits
/// follow the snapshot, and `others_go_on` is false. RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path, const SaveOptions& options = {});

/// Recreates the tables, parents before children, with their indexes and rows. NOT_FOUND: there is no file;
/// FAILED_PRECONDITION: it is another cluster's; DATA_LOSS: it is damaged. An error leaves no table behind.
absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

/// Reads the file to its end; what is known of it without its tables. DATA_LOSS: it is damaged.
absl::StatusOr<SavedRecords> CheckSavedRecords(const std::string& path);

/// Writes it again as that of a cluster on another store, which may load it.
absl::Status CopySavedRecords(const std::string& from, const std::string& to, uint64_t store,
                              const std::string& cluster);

}  // namespace nam::session
