#pragma once

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
/// gone, from the catalog; recreates those that were saved, and deletes the file before the cluster runs, so
/// that it is never older than the tables. Keeps a damaged file under another name, without its tables.
absl::StatusOr<FormerRecords> BringBackRecords(const catalog::ClientOptions& catalog,
                                               const std::string& data_directory);

/// Called at a clean stop. Returns messages for the user. UNAVAILABLE: the cluster does not answer, so
/// nothing can be saved.
absl::StatusOr<std::vector<std::string>> KeepRecords(const catalog::ClientOptions& catalog,
                                                     const std::string& data_directory);

}  // namespace nam::cli
