#include "backup/fresh_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exhausted.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "memserver/memory_pool.h"

namespace nam::backup {
namespace {

/// A slash at the end would follow a link.
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool IsEmpty(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_empty(path, error) && !error;
}

}  // namespace

absl::StatusOr<FreshDirectory> FreshDirectory::Make(const std::string& given,
                                                    std::vector<std::string> names) {
  const std::string path = WithoutSlashes(given);
  const bool made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    if (errno != ENOENT && errno != ENOTDIR)
      return WriteError(absl::StrCat("cannot make `", path, "`"), errno);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make `", path, "`: the directory that it would be in is not there"));
  }
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!directory.valid() || fstat(directory.get(), &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("`", path, "` is there, and no directory of yours; name another"));
  }
  if (!made && !IsEmpty(path))
    return absl::AlreadyExistsError(
        absl::StrCat("`", path, "` is there, and not empty; name another directory"));
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "`", path,
        "` must belong to you, and be closed to others: `chmod 700` it, or name one that is not there"));
  }
  return FreshDirectory(path, std::move(names), std::move(directory), made);
}

FreshDirectory::~FreshDirectory() {
  if (!directory_.valid()) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    if (entry.path().filename() == mark_) continue;
    if (Makes(entry.path().filename())) std::filesystem::remove_all(entry.path(), ignored);
  }
  if (!mark_.empty()) (void)unlinkat(directory_.get(), mark_.c_str(), 0);
  if (made_) rmdir(path_.c_str());
}

bool FreshDirectory::Makes(const std::string& name) const {
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& made) {
    return name.starts_with(made) &&
           (name.size() == made.size() || name[made.size()] == '.' || name[made.size()] == '-');
  });
}

std::string FreshDirectory::PathOf(std::string_view name) const {
  return absl::StrCat(path_, "/", absl::string_view(name.data(), name.size()));
}

absl::Status FreshDirectory::Mark(const std::string& name) {
  const std::string what = absl::StrCat("cannot write `", PathOf(name), "`");
  const UniqueFd mark(
      openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!mark.valid() && errno == EEXIST) {
    directory_.reset();
    return absl::FailedPreconditionError(
        absl::StrCat("another process writes into `", path_, "`; name another directory"));
  }
  if (!mark.valid()) return WriteError(what, errno);
  mark_ = name;
  if (fsync(mark.get()) != 0 || fsync(directory_.get()) != 0) return WriteError(what, errno);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> FreshDirectory::MakeFolder(const std::string& name) {
  const std::string what = absl::StrCat("cannot make `", PathOf(name), "`");
  if (mkdirat(directory_.get(), name.c_str(), 0700) != 0) return WriteError(what, errno);
  names_.push_back(name);
  UniqueFd folder(openat(directory_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return WriteError(what, errno);
  return folder;
}

absl::Status FreshDirectory::CheckRoom(uint64_t bytes) const {
  struct statvfs info;
  if (fstatvfs(directory_.get(), &info) != 0) return absl::OkStatus();
  const uint64_t room = uint64_t{info.f_bavail} * info.f_frsize;
  if (room >= bytes) return absl::OkStatus();
  return DiskFullError(absl::StrFormat("no room in `%s`: %s are needed, %s are free", path_,
                                       memserver::ReadableBytes(bytes), memserver::ReadableBytes(room)));
}

absl::Status FreshDirectory::Keep() {
  int error = fsync(directory_.get()) == 0 ? 0 : errno;
  const UniqueFd parent(openat(directory_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (error == 0 && parent.valid() && fsync(parent.get()) != 0) error = errno;
  if (error != 0) return WriteError(absl::StrCat("cannot write `", path_, "`"), error);
  directory_.reset();
  return absl::OkStatus();
}

}  // namespace nam::backup
