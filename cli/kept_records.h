#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"

/// Keeps record tables of a local cluster between runs: as rows in a file of its data directory.
namespace nam::cli {

/// Messages for the user about the record tables of a former run.
struct FormerRecords {
  std::string there_again;  // true until a memory server ends; empty: none are
  std::vector<std::string> lost;
};

/// Called at the start, before the cluster has other clients. Removes tables of a former run, whose memory is
/// gone, from the catalog; recreates those that were saved when it ended, and deletes the file before the
/// cluster runs. Keeps a file that is damaged, or that the catalog does not know as the last one, under
/// another name, without its tables.
absl::StatusOr<FormerRecords> BringBackRecords(const catalog::ClientOptions& catalog,
                                               const std::string& data_directory);

struct KeptRecords {
  uint64_t number = 0;            // of the file; 0: there are no record tables
  std::vector<std::string> said;  // messages for the user
};

/// Called before a clean stop, by any process. UNAVAILABLE: the cluster does not answer, so nothing can be
/// saved.
absl::StatusOr<KeptRecords> KeepRecords(const catalog::ClientOptions& catalog,
                                        const std::string& data_directory);

/// Called by the process that ends the cluster, and does so once this returns OK: the next start brings back
/// the rows of this file. ABORTED: they are not those of the cluster any more, so it must go on.
absl::Status MarkKept(const catalog::ClientOptions& catalog, const std::string& data_directory,
                      uint64_t number);

}  // namespace nam::cli
