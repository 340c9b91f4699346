#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

/// A local cluster's directory, readable by its owner alone:
///
///     lock           held by the cluster's supervisor as long as it lives
///     cluster.json   who runs and where (ClusterState)
///     secret         the cluster's secret
///     catalog.db     the catalog's store
///     *.log          stderr of every process
namespace nam {

/// $XDG_RUNTIME_DIR/nam, or /tmp/nam-<uid>.
std::string DefaultStateDirectory();
/// Creates it with mode 0700, or checks that it is ours and nobody else's.
absl::Status EnsurePrivateDirectory(const std::string& path);
/// A fresh directory `<prefix>XXXXXX` with mode 0700 under $XDG_RUNTIME_DIR or /tmp.
absl::StatusOr<std::string> CreateTemporaryDirectory(const std::string& prefix);
/// Removes it and all below; what is not there is no error.
void RemoveTree(const std::string& path);

/// Writes 32 random bytes as hexadecimal digits, mode 0600, in place of what was there.
absl::Status WriteFreshSecret(const std::string& path);
/// The secret of a file; FAILED_PRECONDITION if others may read it.
absl::StatusOr<std::string> ReadSecret(const std::string& path);

struct ClusterState {
  struct Server {
    std::string name;  // `memory server 1`
    pid_t pid = 0;
    uint64_t start_time = 0;  // see StartTimeOf
  };
  std::string catalog_address;
  std::string fabric;
  Server supervisor;
  std::vector<Server> servers;
};

std::string StateFile(const std::string& directory);
std::string SecretFile(const std::string& directory);
/// Replaces the file in one step.
absl::Status SaveState(const std::string& directory, const ClusterState& state);
/// NOT_FOUND without a file, DATA_LOSS for one that is damaged.
absl::StatusOr<ClusterState> LoadState(const std::string& directory);
/// Removes what belongs to one run of a cluster, but for its logs.
void RemoveRunFiles(const std::string& directory);

/// The directory's lock. Freed when destroyed, or when the process ends.
/// FAILED_PRECONDITION if another process holds it.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory);

}  // namespace nam
