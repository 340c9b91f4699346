#include "csv/byte_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/staged_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr char kNoSuchFile[] = "58P01", kWriteFailed[] = "58030";

absl::Status ErrorOfSystem(const std::string& path, int error) {
  const char* const state = error == ENOENT || error == ENOTDIR  ? kNoSuchFile
                            : error == EACCES || error == EROFS  ? sqlstate::kNoPrivilege
                            : error == EISDIR                    ? sqlstate::kWrongObjectType
                            : error == ENOSPC || error == EDQUOT ? sqlstate::kDiskFull
                                                                 : kWriteFailed;
  return UserError(state, absl::StrCat("cannot write ", Quote(path), ": ", strerror(error)), -1,
                   error == ENOENT ? "paths are of the host where this client runs, from its folder on" : "");
}

/// An error of StagedFile.
absl::Status AsUserError(const absl::Status& error) {
  if (error.ok()) return error;
  const char* const state = absl::IsResourceExhausted(error)  ? sqlstate::kDiskFull
                            : absl::IsPermissionDenied(error) ? sqlstate::kNoPrivilege
                            : absl::IsNotFound(error)         ? kNoSuchFile
                                                              : kWriteFailed;
  return UserError(state, std::string(error.message()), -1);
}

class FileSink final : public ByteSink {
 public:
  explicit FileSink(StagedFile file) : file_(std::move(file)) {}

  absl::Status Write(std::string_view bytes) override {
    NAM_RETURN_IF_ERROR(AsUserError(file_.Write(written_, bytes)));
    written_ += bytes.size();
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    NAM_RETURN_IF_ERROR(AsUserError(file_.Finish()));
    return AsUserError(file_.Publish());
  }

 private:
  StagedFile file_;
  uint64_t written_ = 0;
};

/// A pipe, or a device.
class StreamSink final : public ByteSink {
 public:
  StreamSink(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_.get(), bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return ErrorOfSystem(path_, done < 0 ? errno : ENOSPC);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return absl::OkStatus();
  }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  const UniqueFd fd_;
  const std::string path_;
};

class FunctionSink final : public ByteSink {
 public:
  explicit FunctionSink(std::function<absl::Status(std::string_view)> write) : write_(std::move(write)) {}
  absl::Status Write(std::string_view bytes) override { return write_(bytes); }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  const std::function<absl::Status(std::string_view)> write_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSink>> CreateFile(const std::string& path) {
  struct stat about {};
  const bool there = stat(path.c_str(), &about) == 0;
  if (!there && errno != ENOENT) return ErrorOfSystem(path, errno);
  if (there && S_ISDIR(about.st_mode)) return ErrorOfSystem(path, EISDIR);
  if (there && !S_ISREG(about.st_mode)) {
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) return ErrorOfSystem(path, errno);
    return std::make_unique<StreamSink>(std::move(fd), path);
  }
  // Replaces the file that a link leads to, not the link; and no file that this user may not write.
  std::string target = path;
  if (there) {
    if (access(path.c_str(), W_OK) != 0) return ErrorOfSystem(path, errno);
    char resolved[PATH_MAX];
    if (realpath(path.c_str(), resolved) == nullptr) return ErrorOfSystem(path, errno);
    target = resolved;
  }
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  if (name.empty()) return ErrorOfSystem(path, EISDIR);
  absl::StatusOr<StagedFile> file = StagedFile::Create(folder, name);
  if (absl::IsNotFound(file.status())) return ErrorOfSystem(path, ENOENT);
  NAM_RETURN_IF_ERROR(AsUserError(file.status()));
  return std::make_unique<FileSink>(*std::move(file));
}

std::unique_ptr<ByteSink> SinkTo(std::function<absl::Status(std::string_view bytes)> write) {
  return std::make_unique<FunctionSink>(std::move(write));
}

}  // namespace nam::csv
