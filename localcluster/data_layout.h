#pragma once

#include <string>

#include "absl/status/status.h"

/// What of a local cluster outlives it. A directory of the owner alone:
///
///     catalog.db       the catalog's store
///     catalog.db.new   of a restore that has not come to its end
///     memory-1         the data directory of the memory server in place 1
///     …
///     records.saved    record tables from one run to the next
namespace nam {

/// What --data-dir says for no data directory.
inline constexpr char kNoDataDirectory[] = "none";
/// The data directory of the cluster in `state_directory`, as this process and others name it: `given` by
/// --data-dir, or `data` in that. Empty: all ends with the cluster.
std::string DataDirectoryOf(const std::string& state_directory, const std::string& given);

/// Makes it with mode 0700, unless it is there. FAILED_PRECONDITION for one that cannot be trusted: no
/// directory, a link, another user's, open to others, or of a restore that was interrupted.
absl::Status MakeDataDirectory(const std::string& path);

std::string StoreIn(const std::string& data_directory);
std::string UnfinishedStoreIn(const std::string& data_directory);
std::string SavedRecordsIn(const std::string& data_directory);
std::string MemoryDirectoryIn(const std::string& data_directory, int place);
/// How many memory servers it takes to have all that is there.
int MemoryDirectoriesIn(const std::string& data_directory);
/// Whether it is lost when the host restarts (tmpfs). Also of one that is not there yet, by the directory
/// that it will be in.
bool EndsWithHost(const std::string& path);

}  // namespace nam
