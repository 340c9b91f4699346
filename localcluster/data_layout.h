#pragma once

#include <string>

#include "absl/status/status.h"

/// The part of a local cluster that outlives it: a directory that only its owner may enter.
///
///     catalog.db       the catalog's store, and room for a DROP on a full disk (catalog/disk_reserve.h)
///     catalog.db.new   of an unfinished restore
///     memory-1         the data directory of the memory server in place 1
///     …
///     records.saved    record tables from one run to the next
namespace nam {

/// The value of --data-dir for no data directory.
inline constexpr char kNoDataDirectory[] = "none";
/// The data directory of the cluster in `state_directory`, as this process and others name it: `given` by
/// --data-dir; else $XDG_DATA_HOME/nam or ~/.local/share/nam for the default state directory, which a restart
/// of the host may empty; else, or if only that has a store, `data` in the state directory. Empty: all ends
/// with the cluster.
std::string DataDirectoryOf(const std::string& state_directory, const std::string& given);

/// Creates the missing directories above the path, with mode 0700.
absl::Status MakeParentsOf(const std::string& path);
/// Creates it with mode 0700 if missing, its parents as well. FAILED_PRECONDITION if it cannot be trusted:
/// not a directory, a link, another user's, open to others, or left by an interrupted restore.
absl::Status MakeDataDirectory(const std::string& path);
/// FAILED_PRECONDITION if a restore into the directory has begun and not ended.
absl::Status CheckNoUnfinishedRestore(const std::string& path);

std::string StoreIn(const std::string& data_directory);
std::string UnfinishedStoreIn(const std::string& data_directory);
std::string SavedRecordsIn(const std::string& data_directory);
std::string MemoryDirectoryIn(const std::string& data_directory, int place);
/// The number of memory servers needed to serve all existing directories.
int MemoryDirectoriesIn(const std::string& data_directory);
/// True if the path is lost when the host restarts (tmpfs). For a missing path, decides by its nearest
/// existing parent.
bool EndsWithHost(const std::string& path);

}  // namespace nam
