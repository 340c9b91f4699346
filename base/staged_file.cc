#include "base/staged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace nam {
namespace {

absl::Status FileError(const char* action, const std::string& path, int error) {
  const std::string message = absl::StrFormat("cannot %s %s: %s", action, path, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message +
                                          " (make room, or write to another disk; nothing is left behind)");
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

absl::StatusOr<StagedFile> StagedFile::Create(const std::string& directory, const std::string& name) {
  static std::atomic<uint64_t> counter = 0;
  StagedFile file(directory, name);
  constexpr int kAttempts = 100;  // names left by a killed process with this process's id
  for (int i = 0; i < kAttempts; ++i) {
    const std::string path = absl::StrFormat("%s/.nam-%d-%d.partial", directory, getpid(), counter++);
    file.fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.fd_.valid()) {
      file.staged_path_ = path;
      struct stat replaced {};
      if (::stat(file.path().c_str(), &replaced) == 0 &&
          ::fchmod(file.fd_.get(), replaced.st_mode & 0777) != 0)
        return FileError("set the permissions of", path, errno);
      return file;
    }
    if (errno != EEXIST) return FileError("create", path, errno);
  }
  return absl::AlreadyExistsError(absl::StrFormat("remove the .nam-*.partial files in %s", directory));
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : directory_(std::move(other.directory_)),
      name_(std::move(other.name_)),
      staged_path_(std::exchange(other.staged_path_, {})),
      fd_(std::move(other.fd_)) {}

StagedFile::~StagedFile() {
  if (!staged_path_.empty()) ::unlink(staged_path_.c_str());
}

absl::Status StagedFile::Write(uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return FileError("write", path(), done < 0 ? errno : ENOSPC);
    offset += static_cast<uint64_t>(done);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

absl::Status StagedFile::Finish() const {
  if (::fdatasync(fd_.get()) != 0) return FileError("write", path(), errno);
  return absl::OkStatus();
}

absl::Status StagedFile::Publish() {
  if (std::rename(staged_path_.c_str(), path().c_str()) != 0) return FileError("create", path(), errno);
  staged_path_.clear();
  fd_.reset();
  return absl::OkStatus();
}

}  // namespace nam
