#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"

/// Record tables of a local cluster from one run to the next: as rows in a file of its data directory.
namespace nam::cli {

/// At the start, before anybody else is a client: tables of a former run, whose memory is gone, leave the
/// catalog; those that were saved are made again, and the file goes before the cluster runs, so that it is
/// never older than the tables. What is to be said of that. A damaged file is kept under another name, and
/// its tables are not there.
absl::StatusOr<std::vector<std::string>> BringBackRecords(const catalog::ClientOptions& catalog,
                                                          const std::string& data_directory);

/// At a clean stop. What is to be said. UNAVAILABLE: nobody answers, so nothing can be saved.
absl::StatusOr<std::vector<std::string>> KeepRecords(const catalog::ClientOptions& catalog,
                                                     const std::string& data_directory);

}  // namespace nam::cli
