#include "csv/byte_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/staged_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "csv/destination.h"
#include "csv/interruptible_io.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

absl::Status ErrorOfSystem(const std::string& path, int error) {
  const char* const state = error == ENOENT || error == ENOTDIR  ? sqlstate::kNoSuchFile
                            : error == EACCES || error == EROFS  ? sqlstate::kNoPrivilege
                            : error == EISDIR                    ? sqlstate::kWrongObjectType
                            : error == ENOSPC || error == EDQUOT ? sqlstate::kDiskFull
                                                                 : sqlstate::kIoError;
  return UserError(state, absl::StrCat("cannot write ", Quote(path), ": ", strerror(error)), -1,
                   error == ENOENT ? "paths are of the host where this client runs, from its folder on" : "");
}

/// An error of StagedFile.
absl::Status AsUserError(const absl::Status& error) {
  if (error.ok()) return error;
  const char* const state = absl::IsResourceExhausted(error)  ? sqlstate::kDiskFull
                            : absl::IsPermissionDenied(error) ? sqlstate::kNoPrivilege
                            : absl::IsNotFound(error)         ? sqlstate::kNoSuchFile
                                                              : sqlstate::kIoError;
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

/// A descriptor that is written to as it is.
class DescriptorSink final : public ByteSink {
 public:
  /// `replaces`: a regular file, of which nothing stays.
  DescriptorSink(UniqueFd fd, std::string path, bool replaces)
      : fd_(std::move(fd)), path_(std::move(path)), replaces_(replaces) {
    struct stat about {};
    regular_ = fstat(fd_.get(), &about) == 0 && S_ISREG(about.st_mode);
  }

  absl::Status Write(std::string_view bytes) override {
    NAM_RETURN_IF_ERROR(Empty());
    while (!bytes.empty()) {
      NAM_RETURN_IF_ERROR(AwaitReady(fd_.get(), POLLOUT));
      // A pipe that has room takes so much at once, without waiting for its reader.
      const ssize_t done = ::write(fd_.get(), bytes.data(),
                                   regular_ ? bytes.size() : std::min<size_t>(bytes.size(), PIPE_BUF));
      if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (done <= 0) return ErrorOfSystem(path_, done < 0 ? errno : ENOSPC);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    NAM_RETURN_IF_ERROR(Empty());
    return regular_ && fdatasync(fd_.get()) != 0 ? ErrorOfSystem(path_, errno) : absl::OkStatus();
  }

 private:
  /// Not before there are bytes: a statement that fails early leaves the file.
  absl::Status Empty() {
    if (!std::exchange(replaces_, false)) return absl::OkStatus();
    return ftruncate(fd_.get(), 0) != 0 ? ErrorOfSystem(path_, errno) : absl::OkStatus();
  }

  const UniqueFd fd_;
  const std::string path_;
  bool replaces_;
  bool regular_ = false;
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
  using Kind = Destination::Kind;
  Destination destination;
  if (const int error = FindDestination(path, destination); error != 0) return ErrorOfSystem(path, error);
  if (destination.kind == Kind::kReplace) {
    absl::StatusOr<StagedFile> file = StagedFile::Create(destination.folder, destination.name);
    if (absl::IsNotFound(file.status())) return ErrorOfSystem(path, ENOENT);
    NAM_RETURN_IF_ERROR(AsUserError(file.status()));
    return std::make_unique<FileSink>(*std::move(file));
  }
  UniqueFd fd;
  if (destination.kind == Kind::kDescriptor) {
    fd.reset(fcntl(destination.descriptor, F_DUPFD_CLOEXEC, 0));
  } else if (destination.fifo) {
    NAM_ASSIGN_OR_RETURN(fd, OpenFifoToWrite(path));
  } else {
    fd.reset(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  }
  if (!fd.valid()) return ErrorOfSystem(path, errno);
  return std::make_unique<DescriptorSink>(std::move(fd), path, destination.kind == Kind::kInPlace);
}

std::unique_ptr<ByteSink> SinkTo(std::function<absl::Status(std::string_view bytes)> write) {
  return std::make_unique<FunctionSink>(std::move(write));
}

}  // namespace nam::csv
