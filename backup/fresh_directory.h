#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam::backup {

/// Reports the progress of a long operation: its current step, and bytes. Called on the thread that started
/// the operation.
using OnProgress = std::function<void(std::string_view doing, uint64_t bytes_done, uint64_t bytes_expected)>;

/// A private directory of this user that is filled from empty. Unless Keep was called, the destructor removes
/// what was made in it, and the directory itself if this object made it and nothing else is in it.
class FreshDirectory {
 public:
  /// Makes the directory with mode 0700, or takes an existing empty one. ALREADY_EXISTS: it is not empty;
  /// FAILED_PRECONDITION: the path is no directory, or is open to other users. `names` are the files and
  /// folders that the caller makes there, besides those of MakeFolder. They may get suffixes that begin with
  /// a dot or a dash, as unfinished files do. Files that other processes put there meanwhile stay.
  static absl::StatusOr<FreshDirectory> Make(const std::string& path, std::vector<std::string> names);
  FreshDirectory(FreshDirectory&& other) noexcept
      : path_(std::move(other.path_)),
        names_(std::move(other.names_)),
        mark_(std::move(other.mark_)),
        directory_(std::move(other.directory_)),
        made_(other.made_) {}
  FreshDirectory& operator=(FreshDirectory&&) = delete;
  ~FreshDirectory();

  const std::string& path() const { return path_; }
  int fd() const { return directory_.get(); }
  std::string PathOf(std::string_view name) const;
  /// Makes an empty file that says that the directory is not whole: durable at once, and the last of what the
  /// destructor removes. The caller renames it when the directory is whole. FAILED_PRECONDITION: another
  /// process has marked the directory meanwhile, and all that is in it stays.
  absl::Status Mark(const std::string& name);
  /// A folder in it, for files; mode 0700.
  absl::StatusOr<UniqueFd> MakeFolder(const std::string& name);
  /// RESOURCE_EXHAUSTED, with the figures, if its disk has less room than that.
  absl::Status CheckRoom(uint64_t bytes) const;
  /// Keeps the directory, and makes it and the names in it durable.
  absl::Status Keep();

 private:
  FreshDirectory(std::string path, std::vector<std::string> names, UniqueFd directory, bool made)
      : path_(std::move(path)), names_(std::move(names)), directory_(std::move(directory)), made_(made) {}
  bool Makes(const std::string& name) const;

  std::string path_;
  std::vector<std::string> names_;
  std::string mark_;    // empty: none
  UniqueFd directory_;  // not valid: it stays
  bool made_ = false;
};

}  // namespace nam::backup
