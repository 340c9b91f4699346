#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "localcluster/process.h"

/// A local cluster's directory, readable by its owner alone:
///
///     lock           held by the cluster's supervisor as long as it lives
///     cluster.json   who runs and where (ClusterState)
///     secret         the cluster's secret
///     catalog.db     the catalog's store
///     control        where the supervisor listens for requests
///     *.log          logs of all processes
namespace nam {

/// $XDG_RUNTIME_DIR/nam, or /tmp/nam-<uid>.
std::string DefaultStateDirectory();
/// A fresh directory `<prefix>XXXXXX` with mode 0700 under $XDG_RUNTIME_DIR or /tmp.
absl::StatusOr<std::string> CreateTemporaryDirectory(const std::string& prefix);
/// Removes it and all below; what is not there is no error.
void RemoveTree(const std::string& path);

/// The secret of a file; FAILED_PRECONDITION unless it is a regular file of this user that no other may read
/// (base/private_file.h), with a secret of 16 bytes at least.
absl::StatusOr<std::string> ReadSecret(const std::string& path);

struct ClusterState {
  struct Server {
    std::string name;  // `memory server 1`
    ProcessIdentity process;
  };
  std::string catalog_address;
  std::string fabric;
  std::string data_directory;  // localcluster/data_layout.h; empty: none
  Server supervisor;
  std::vector<Server> servers;
  std::vector<std::string> events = {};  // what the supervisor did of late, the last one last
};

/// A descriptor of such a directory. In /tmp anybody may have made one of that name: Open takes it only if it
/// is a directory, not a link to one, that belongs to this user and is closed to all others; and from then on
/// every name in it is looked up below the descriptor, without following links, whatever becomes of the path.
/// Every file is checked as it was opened: a regular file of this user, closed to others.
class StateDirectory {
 public:
  /// NOT_FOUND if there is none; FAILED_PRECONDITION for one that cannot be trusted, with what to do.
  static absl::StatusOr<StateDirectory> Open(const std::string& path);
  /// Makes it with mode 0700 first, unless there is one.
  static absl::StatusOr<StateDirectory> Create(const std::string& path);

  /// As it was given, for messages.
  const std::string& path() const { return path_; }
  /// Valid as long as this lives.
  int fd() const { return directory_.get(); }

  /// Writes 32 random bytes as hexadecimal digits in place of what was there.
  absl::Status WriteFreshSecret() const;
  absl::StatusOr<std::string> ReadSecret() const;
  /// Replaces the file in one step.
  absl::Status SaveState(const ClusterState& state) const;
  /// NOT_FOUND without a file, DATA_LOSS for one that is damaged.
  absl::StatusOr<ClusterState> LoadState() const;
  /// Removes what belongs to one run of a cluster, by the names above: not its logs, nor what others put
  /// there.
  void RemoveRunFiles() const;
  /// The lock. Freed when destroyed, or when the process ends. ALREADY_EXISTS if another process holds it.
  absl::StatusOr<UniqueFd> Lock() const;

 private:
  StateDirectory(std::string path, UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  absl::StatusOr<UniqueFd> OpenFile(const char* name, int flags) const;
  absl::StatusOr<std::string> ReadFile(const char* name) const;
  absl::Status ReplaceFile(const std::string& name, const std::string& text) const;

  std::string path_;
  UniqueFd directory_;
};

/// Paths of files in a directory, for messages and for other processes.
std::string StateFile(const std::string& directory);
std::string SecretFile(const std::string& directory);

}  // namespace nam
