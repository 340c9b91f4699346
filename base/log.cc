#include "base/log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace nam {
namespace {

constexpr std::array<const char*, 4> kLevelNames = {"error", "warning", "info", "debug"};
constexpr size_t kEarlyBytesMax = 64 << 10;
constexpr uint64_t kAheadBytes = 64 << 10;

std::string Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm fields;
  gmtime_r(&now.tv_sec, &fields);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &fields);
  return absl::StrFormat("%s.%03dZ", text, static_cast<int>(now.tv_nsec / 1'000'000));
}

/// A peer's text must not look like a line of this log.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return text;
}

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the disk is full: the process continues without its log
    at += static_cast<size_t>(n);
  }
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class ProcessLog {
 public:
  void Start(LogLevel level, const std::string& name) {
    const MutexLock lock(mutex_);
    level_ = level;
    name_ = name;
    started_ = true;
  }

  absl::Status OpenFile(const LogFileOptions& options) {
    const MutexLock lock(mutex_);
    UniqueFd directory(open(options.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory.valid()) return Errno(options.directory);
    directory_ = std::move(directory);
    file_ = options;
    name_ = options.name;
    NAM_ASSIGN_OR_RETURN(const UniqueFd fd, Open(FileName(0)));
    NAM_RETURN_IF_ERROR(Redirect(fd));
    room_end_ = 0;
    TakeRoom();
    WriteAll(STDERR_FILENO, early_);
    early_.clear();
    return absl::OkStatus();
  }

  void Write(LogLevel level, const std::string& text) {
    const MutexLock lock(mutex_);
    if (level > level_) return;
    const std::string line = absl::StrFormat("%s %s %s: %s\n", Now(), kLevelNames[static_cast<size_t>(level)],
                                             name_, OneLine(text));
    if (directory_.valid()) {
      RotateIfFull(line.size());
      TakeRoom();
    } else if (started_ && early_.size() + line.size() <= kEarlyBytesMax) {
      early_ += line;
    }
    WriteAll(STDERR_FILENO, line);
  }

 private:
  static absl::Status Errno(const std::string& what) {
    const int error = errno;
    return absl::InternalError(absl::StrCat("cannot write the log ", what, ": ", std::strerror(error)));
  }

  std::string FileName(int older) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return older == 0 ? file_.name + ".log" : absl::StrCat(file_.name, ".log.", older);
  }

  /// Opens for appending. A pipe without a reader must not block.
  absl::StatusOr<UniqueFd> Open(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string path = absl::StrCat(file_.directory, "/", name);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    UniqueFd fd(openat(directory_.get(), name.c_str(), kFlags, 0600));
    struct stat info;
    if (!fd.valid() || fstat(fd.get(), &info) != 0) return Errno(path);
    if (S_ISREG(info.st_mode) && info.st_uid == geteuid()) return fd;
    return absl::FailedPreconditionError(absl::StrCat("the log ", path, " is no file of yours"));
  }

  /// Replaces standard error by the file, and standard output if both are the same.
  absl::Status Redirect(const UniqueFd& fd) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    struct stat err, out;
    const bool out_too =
        fstat(STDERR_FILENO, &err) == 0 && fstat(STDOUT_FILENO, &out) == 0 && SameFile(err, out);
    if (dup2(fd.get(), STDERR_FILENO) < 0 || (out_too && dup2(fd.get(), STDOUT_FILENO) < 0))
      return Errno(file_.directory);
    return absl::OkStatus();
  }

  /// Other writers' bytes on standard error count too. If no new file can be opened, the current one keeps
  /// growing and older files stay.
  void RotateIfFull(size_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    struct stat info;
    if (fstat(STDERR_FILENO, &info) != 0 || info.st_size == 0 ||
        static_cast<uint64_t>(info.st_size) + more <= file_.bytes_max) {
      return;
    }
    const std::string fresh = FileName(0) + ".new";
    const absl::StatusOr<UniqueFd> fd = Open(fresh);
    if (!fd.ok()) return;
    for (int older = file_.older_files; older > 0; --older) {
      renameat(directory_.get(), FileName(older - 1).c_str(), directory_.get(), FileName(older).c_str());
    }
    renameat(directory_.get(), fresh.c_str(), directory_.get(), FileName(0).c_str());
    Redirect(*fd).IgnoreError();
    room_end_ = 0;
  }

  /// Reserves disk space ahead of the lines while there is some, so that the log can still record the effects
  /// of a full disk.
  void TakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    struct stat info;
    rlimit limit;
    if (fstat(STDERR_FILENO, &info) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
    const auto size = static_cast<uint64_t>(info.st_size);
    const bool enough = size <= room_end_ && room_end_ - size >= kAheadBytes / 2;
    // Beyond the limit the process would get SIGXFSZ.
    if (enough || size + kAheadBytes > limit.rlim_cur) return;
    if (fallocate(STDERR_FILENO, FALLOC_FL_KEEP_SIZE, info.st_size, kAheadBytes) == 0)
      room_end_ = size + kAheadBytes;
  }

  Mutex mutex_;
  LogLevel level_ ABSL_GUARDED_BY(mutex_) = LogLevel::kError;
  std::string name_ ABSL_GUARDED_BY(mutex_) = "nam";
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::string early_ ABSL_GUARDED_BY(mutex_);      // lines from before the file was opened
  UniqueFd directory_ ABSL_GUARDED_BY(mutex_);     // invalid: standard error
  uint64_t room_end_ ABSL_GUARDED_BY(mutex_) = 0;  // disk space is reserved up to this byte
  LogFileOptions file_ ABSL_GUARDED_BY(mutex_);
};

ProcessLog& TheLog() {
  static ProcessLog& log = *new ProcessLog;  // threads may log while statics are destroyed
  return log;
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("--log-level is error, warning, info or debug, not ", name));
}

void StartLog(LogLevel level, const std::string& name) {
  TheLog().Start(level, name);
}

absl::Status OpenLogFile(const LogFileOptions& options) {
  return TheLog().OpenFile(options);
}

void Log(LogLevel level, const std::string& text) {
  TheLog().Write(level, text);
}

}  // namespace nam
