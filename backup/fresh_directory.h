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

/// How far a long work is: what it does, and bytes. Called on the thread that called for the work.
using OnProgress = std::function<void(std::string_view doing, uint64_t bytes_done, uint64_t bytes_expected)>;

/// A directory of this user alone that is filled from empty. What was made in it goes with this, and so does
/// the directory, if it was made here and nothing else is in it; unless Keep was called.
class FreshDirectory {
 public:
  /// Makes it with mode 0700, unless it is there, and empty. ALREADY_EXISTS: it is not empty;
  /// FAILED_PRECONDITION: it is none, or is not closed to others. `names` are the files and folders that the
  /// caller makes there, besides those of MakeFolder: also with endings that begin with a dot or a dash, as
  /// unfinished files have. Others may put other files there meanwhile, and these stay.
  static absl::StatusOr<FreshDirectory> Make(const std::string& path, std::vector<std::string> names);
  FreshDirectory(FreshDirectory&& other) noexcept
      : path_(std::move(other.path_)),
        names_(std::move(other.names_)),
        directory_(std::move(other.directory_)),
        made_(other.made_) {}
  FreshDirectory& operator=(FreshDirectory&&) = delete;
  ~FreshDirectory();

  const std::string& path() const { return path_; }
  int fd() const { return directory_.get(); }
  std::string PathOf(std::string_view name) const;
  /// A folder in it, for files; mode 0700.
  absl::StatusOr<UniqueFd> MakeFolder(const std::string& name);
  /// RESOURCE_EXHAUSTED, with the figures, if its disk has less room than that.
  absl::Status CheckRoom(uint64_t bytes) const;
  /// It stays, and is on disk with the names in it.
  absl::Status Keep();

 private:
  FreshDirectory(std::string path, std::vector<std::string> names, UniqueFd directory, bool made)
      : path_(std::move(path)), names_(std::move(names)), directory_(std::move(directory)), made_(made) {}
  bool Makes(const std::string& name) const;

  std::string path_;
  std::vector<std::string> names_;
  UniqueFd directory_;  // not valid: it stays
  bool made_ = false;
};

}  // namespace nam::backup
