#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/record_access.h"

/// Record tables as a file (session/record_file.h): definitions, rows as bytes, and how far columns have
/// counted.
namespace nam::session {

struct SavedRecords {
  std::vector<std::string> tables;
  /// Those that cannot be read, since memory of them is lost.
  std::vector<std::string> lost;
  uint64_t rows = 0;
  uint64_t bytes = 0;  // of the file
};

/// Writes all record tables as they are at one snapshot, behind which nobody had committed when it was done.
/// Without tables no file is made. FAILED_PRECONDITION: others go on committing. RESOURCE_EXHAUSTED: the disk
/// is full.
absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

/// Makes the tables again, parents before children, with their indexes and rows. NOT_FOUND: there is no file;
/// FAILED_PRECONDITION: it is another cluster's; DATA_LOSS: it is
/// damaged. After an error none of them stays.
absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path);

}  // namespace nam::session
