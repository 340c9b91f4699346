#include "base/replaced_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/exhausted.h"
#include "base/unique_fd.h"

namespace nam {

absl::Status WriteError(const std::string& message, int error) {
  const std::string text = absl::StrCat(message, ": ", std::strerror(error));
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? DiskFullError(text) : absl::InternalError(text);
}

absl::Status ReplacePrivateFile(int directory, const std::string& name, std::string_view bytes,
                                const std::string& what) {
  const std::string fresh_name = name + ".new";
  unlinkat(directory, fresh_name.c_str(), 0);
  const UniqueFd fresh(
      openat(directory, fresh_name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  int error = fresh.valid() ? 0 : errno;
  while (error == 0 && !bytes.empty()) {
    const ssize_t n = write(fresh.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) error = n < 0 ? errno : ENOSPC;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (error == 0 && fsync(fresh.get()) != 0) error = errno;
  if (error == 0 && renameat(directory, fresh_name.c_str(), directory, name.c_str()) != 0) error = errno;
  if (error == 0 && fsync(directory) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  unlinkat(directory, fresh_name.c_str(), 0);
  return WriteError(absl::StrCat("cannot write ", what), error);
}

}  // namespace nam
