#include "csv/byte_source.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "csv/interruptible_io.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

absl::Status FileError(const std::string& path, int error) {
  const char* const state = error == ENOENT || error == ENOTDIR ? sqlstate::kNoSuchFile
                            : error == EACCES                   ? sqlstate::kNoPrivilege
                            : error == EISDIR                   ? sqlstate::kWrongObjectType
                                                                : sqlstate::kIoError;
  return UserError(state, absl::StrCat("cannot read ", Quote(path), ": ", strerror(error)), -1,
                   error == ENOENT ? "paths are of the host where this client runs, from its folder on" : "");
}

FileVersion VersionOf(const struct stat& about) {
  if (!S_ISREG(about.st_mode)) return {};
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return {static_cast<uint64_t>(about.st_size), about.st_ino,
          about.st_mtim.tv_sec * kNsPerSecond + about.st_mtim.tv_nsec};
}

class FileSource final : public ByteSource {
 public:
  /// `owned`: closes it.
  FileSource(int fd, UniqueFd owned, std::string name, uint64_t bytes, std::optional<FileVersion> version)
      : fd_(fd), owned_(std::move(owned)), name_(std::move(name)), bytes_(bytes), version_(version) {}

  absl::Status CheckVersion() const {
    struct stat about {};
    if (!version_.has_value() || (fstat(fd_, &about) == 0 && VersionOf(about) == *version_))
      return absl::OkStatus();
    return UserError(sqlstate::kWrongState,
                     absl::StrCat(name_, " has changed since the statement began to read it"), -1,
                     "run the statement again");
  }

  absl::StatusOr<size_t> Read(char* into, size_t bytes) override {
    while (true) {
      NAM_RETURN_IF_ERROR(AwaitReady(fd_, POLLIN));
      const ssize_t n = read(fd_, into, bytes);
      if (n == 0) NAM_RETURN_IF_ERROR(CheckVersion());
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR && errno != EAGAIN) return FileError(name_, errno);
    }
  }
  const std::string& name() const override { return name_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  const int fd_;
  const UniqueFd owned_;
  const std::string name_;
  const uint64_t bytes_;
  const std::optional<FileVersion> version_;
};

}  // namespace

FileVersion VersionOf(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 ? VersionOf(about) : FileVersion();
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path,
                                                     std::optional<FileVersion> version) {
  // A FIFO that nothing writes to yet: Read waits, which may be cancelled.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return FileError(path, errno);
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return FileError(path, errno);
  if (S_ISDIR(about.st_mode)) return FileError(path, EISDIR);
  const uint64_t bytes = S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0;
  const int raw = fd.get();
  auto source = std::make_unique<FileSource>(raw, std::move(fd), path.substr(path.rfind('/') + 1), bytes,
                                             version.value_or(VersionOf(about)));
  NAM_RETURN_IF_ERROR(source->CheckVersion());
  return source;
}

std::unique_ptr<ByteSource> StandardInput() {
  return std::make_unique<FileSource>(STDIN_FILENO, UniqueFd(), "standard input", 0, std::nullopt);
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return std::vector<std::string>{pattern};
  glob_t found = {};
  const int result = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  globfree(&found);
  // A file may have such a name.
  if (files.empty() && access(pattern.c_str(), F_OK) == 0) files.push_back(pattern);
  if (files.empty()) return FileError(pattern, ENOENT);
  return files;
}

}  // namespace nam::csv
