#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam::backup {

/// How far a long work is: what it does, and bytes. Called on the thread that called for the work.
using OnProgress = std::function<void(std::string_view doing, uint64_t bytes_done, uint64_t bytes_expected)>;

/// A directory of this user alone that is filled from empty. What is in it goes with this, and so does the
/// directory, if it was made here; unless Keep was called.
class FreshDirectory {
 public:
  /// Makes it with mode 0700, unless it is there, and empty. ALREADY_EXISTS: it is not empty;
  /// FAILED_PRECONDITION: it is none, or is not closed to others.
  static absl::StatusOr<FreshDirectory> Make(const std::string& path);
  FreshDirectory(FreshDirectory&& other) noexcept
      : path_(std::move(other.path_)), directory_(std::move(other.directory_)), made_(other.made_) {}
  FreshDirectory& operator=(FreshDirectory&&) = delete;
  ~FreshDirectory();

  const std::string& path() const { return path_; }
  int fd() const { return directory_.get(); }
  std::string PathOf(std::string_view name) const;
  /// A folder in it, for files; mode 0700.
  absl::StatusOr<UniqueFd> MakeFolder(const std::string& name) const;
  /// RESOURCE_EXHAUSTED, with the figures, if its disk has less room than that.
  absl::Status CheckRoom(uint64_t bytes) const;
  /// It stays, and is on disk with the names in it.
  absl::Status Keep();

 private:
  FreshDirectory(std::string path, UniqueFd directory, bool made)
      : path_(std::move(path)), directory_(std::move(directory)), made_(made) {}

  std::string path_;
  UniqueFd directory_;  // not valid: it stays
  bool made_ = false;
};

}  // namespace nam::backup
