#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/record_access.h"

/// Saves record tables in a file (session/record_file.h): definitions, rows as bytes, and column counters.
namespace nam::session {

struct SavedRecords {
  std::vector<std::string> tables;
  /// Unreadable tables, which have lost memory.
  std::vector<std::string> lost;
  uint64_t rows = 0;
  uint64_t bytes = 0;  // of the file
};

/// Writes all record tables as of one snapshot, and verifies that no commit followed it. Without tables no
/// file is made. FAILED_PRECONDITION: other clients go on committing. RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

/// Recreates the tables, parents before children, with their indexes and rows. NOT_FOUND: there is no file;
/// FAILED_PRECONDITION: it is another cluster's; DATA_LOSS: it is damaged. An error leaves no table behind.
absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

}  // namespace nam::session
