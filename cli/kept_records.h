#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/client.h"
#include "cli/scale_requests.h"
#include "session/sole_client.h"

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

/// What a clean stop has saved. The cluster takes no clients while this lives, so it must live until the
/// cluster has ended.
struct KeptRecords {
  std::unique_ptr<catalog::Attachment> attachment;
  std::optional<session::SoleClient> sole;  // of the attachment
  EndRequest end;
  std::vector<std::string> said;  // messages for the user
};

/// Called before a clean stop, by any process: ends the sessions of all clients, and saves all that they have
/// committed. An error: the cluster goes on, and clients can join again. UNAVAILABLE: the cluster does not
/// answer, so nothing can be saved.
absl::StatusOr<KeptRecords> KeepRecords(const catalog::ClientOptions& catalog,
                                        const std::string& data_directory);

/// Called by the process that ends the cluster, and does so once this returns OK: the next start brings back
/// the rows of this file. ABORTED: other clients may have changed them since, so the cluster must go on.
absl::Status MarkKept(const catalog::ClientOptions& catalog, const std::string& data_directory,
                      const EndRequest& request);

}  // namespace nam::cli
