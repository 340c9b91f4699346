#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;

/// The file's status, if it is a regular file.
absl::StatusOr<struct stat> Look(int fd, const std::string& what) {
  struct stat info;
  if (fstat(fd, &info) != 0) return CannotRead(what, errno);
  if (S_ISREG(info.st_mode)) return info;
  return absl::FailedPreconditionError(absl::StrCat(what, " is no regular file"));
}

}  // namespace

absl::Status CannotRead(const std::string& what, int error) {
  const std::string message = absl::StrCat("cannot read ", what, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::FailedPreconditionError(message);
}

absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, const std::string& what) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return CannotRead(what, errno);
  NAM_RETURN_IF_ERROR(Look(fd.get(), what).status());
  return fd;
}

absl::Status CheckPrivateFile(int fd, const std::string& what) {
  NAM_ASSIGN_OR_RETURN(const struct stat info, Look(fd, what));
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " belongs to another user (", info.st_uid, "); use a file of your own"));
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("others may read ", what, "; `chmod 600` it, or better, make a new one"));
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& what) {
  std::string text;
  char chunk[4096];
  while (text.size() <= kFileBytesMax) {
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(what, errno);
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
  }
  return absl::FailedPreconditionError(absl::StrCat(what, " is larger than a megabyte"));
}

}  // namespace nam
