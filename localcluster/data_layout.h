#pragma once

#include <string>

#include "absl/status/status.h"

/// The part of a local cluster that outlives it: a directory that only its owner may enter.
///
///     catalog.db   the catalog's store
///     memory-1     the data directory of the memory server in place 1
///     …
namespace nam {

/// Creates it with mode 0700 if missing. FAILED_PRECONDITION if it cannot be trusted: not a directory, a
/// link, another user's, or open to others.
absl::Status MakeDataDirectory(const std::string& path);

std::string StoreIn(const std::string& data_directory);
std::string MemoryDirectoryIn(const std::string& data_directory, int place);
/// The number of memory servers needed to serve all existing directories.
int MemoryDirectoriesIn(const std::string& data_directory);
/// True if the path is lost when the host restarts (tmpfs). For a missing path, decides by its nearest
/// existing parent.
bool EndsWithHost(const std::string& path);

}  // namespace nam
