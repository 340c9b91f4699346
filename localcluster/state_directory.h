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

/// The directory of a local cluster, readable only by its owner:
///
///     lock           held by the cluster's supervisor while it lives
///     cluster.json   the running processes and addresses (ClusterState)
///     secret         the cluster's secret
///     catalog.db     the catalog's store
///     control        where the supervisor listens for requests
///     *.log          logs of all processes
namespace nam {

/// $XDG_RUNTIME_DIR/nam, or /tmp/nam-<uid>: of processes, gone with the host.
std::string DefaultStateDirectory();
/// A fresh directory `<prefix>XXXXXX` with mode 0700 under $XDG_RUNTIME_DIR or /tmp.
absl::StatusOr<std::string> CreateTemporaryDirectory(const std::string& prefix);
/// Removes it recursively; a missing path is no error.
void RemoveTree(const std::string& path);

/// Reads a secret file. FAILED_PRECONDITION unless it is a regular file of this user, unreadable for others
/// (base/private_file.h), with a secret of at least 16 bytes.
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
  std::vector<std::string> events = {};  // the supervisor's recent actions, newest last
};

/// An open state directory. In /tmp any user may create a directory of that name, so Open accepts only a real
/// directory, not a link, that belongs to this user and is closed to all others. From then on names are
/// resolved below the descriptor, without following links, whatever becomes of the path. Every opened file is
/// checked: a regular file of this user, closed to others.
class StateDirectory {
 public:
  /// NOT_FOUND if missing; FAILED_PRECONDITION if it cannot be trusted, with a remedy.
  static absl::StatusOr<StateDirectory> Open(const std::string& path);
  /// Creates it with mode 0700 if missing.
  static absl::StatusOr<StateDirectory> Create(const std::string& path);

  /// The path as given, for messages.
  const std::string& path() const { return path_; }
  /// Valid for the lifetime of this object.
  int fd() const { return directory_.get(); }

  /// Replaces the secret by 32 random bytes as hexadecimal digits.
  absl::Status WriteFreshSecret() const;
  absl::StatusOr<std::string> ReadSecret() const;
  /// Replaces the file in one step.
  absl::Status SaveState(const ClusterState& state) const;
  /// NOT_FOUND if there is no file, DATA_LOSS if it is damaged.
  absl::StatusOr<ClusterState> LoadState() const;
  /// Removes the files of one run of a cluster, by the names above; keeps logs and other files.
  void RemoveRunFiles() const;
  /// Takes the lock, which is freed when the result is destroyed or the process ends. ALREADY_EXISTS if
  /// another process holds it.
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

/// Paths of files in a directory, for messages and other processes.
std::string StateFile(const std::string& directory);
std::string SecretFile(const std::string& directory);

}  // namespace nam
