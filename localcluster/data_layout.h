#pragma once

#include <string>

#include "absl/status/status.h"

/// What of a local cluster outlives it. A directory of the owner alone:
///
///     catalog.db   the catalog's store
///     memory-1     the data directory of the memory server in place 1
///     …
namespace nam {

/// Makes it with mode 0700, unless it is there. FAILED_PRECONDITION for one that cannot be trusted: no
/// directory, a link, another user's, or open to others.
absl::Status MakeDataDirectory(const std::string& path);

std::string StoreIn(const std::string& data_directory);
std::string MemoryDirectoryIn(const std::string& data_directory, int place);
/// How many memory servers it takes to have all that is there.
int MemoryDirectoriesIn(const std::string& data_directory);
/// Whether it is lost when the host restarts (tmpfs). Also of one that is not there yet, by the directory
/// that it will be in.
bool EndsWithHost(const std::string& path);

}  // namespace nam
