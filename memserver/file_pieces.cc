#include "memserver/file_pieces.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/processors.h"
#include "base/unique_fd.h"
#include "storage/checksum.h"

namespace nam::memserver {
namespace {

constexpr int kReadersMin = 4;  // a disk likes concurrent requests, even with few processors
constexpr int kReadersMax = 16;

}  // namespace

int WriteAll(int fd, std::span<const std::byte> bytes, uint64_t file_offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(file_offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(n));
    file_offset += static_cast<uint64_t>(n);
  }
  return 0;
}

int ReadAllAt(int fd, std::span<std::byte> bytes, uint64_t file_offset) {
  while (!bytes.empty()) {
    const ssize_t n = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(file_offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return kEndsTooEarly;
    bytes = bytes.subspan(static_cast<size_t>(n));
    file_offset += static_cast<uint64_t>(n);
  }
  return 0;
}

absl::Status FileReadError(std::string_view what, int error) {
  const std::string message =
      absl::StrCat(absl::string_view(what.data(), what.size()), ": ",
                   error == kEndsTooEarly ? "it ends too early" : std::strerror(error));
  switch (error) {
    case EMFILE:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; raise the limit of open files (`ulimit -n`), and start again"));
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(
          message, "; raise the host's limit of open files (sysctl fs.file-max), and start again"));
    case ENOMEM:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; free memory of the host, and start again"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          message, "; make it readable by the user who runs this (`chmod 600`), and start again"));
    default:
      return absl::DataLossError(message);
  }
}

bool MayBeWhole(const absl::Status& error) {
  return absl::IsResourceExhausted(error) || absl::IsPermissionDenied(error);
}

int Reserve(int fd, uint64_t bytes) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ? 0 : errno;
}

void StartWriteback(int fd, uint64_t file_offset, uint64_t bytes) {
  (void)sync_file_range(fd, static_cast<off_t>(file_offset), static_cast<off_t>(bytes),
                        SYNC_FILE_RANGE_WRITE);
}

namespace {

/// Reads pieces on one thread, most of them in the order of the files: it opens each once.
class PieceReader {
 public:
  PieceReader(int directory, const std::vector<std::string>& files) : directory_(directory), files_(files) {}

  absl::Status Read(const PieceToRead& piece) {
    if (!fd_.valid() || piece.file != file_) {
      file_ = piece.file;
      fd_.reset();
      fd_.reset(openat(directory_, files_[file_].c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (!fd_.valid()) return FileReadError("it cannot be opened", errno);
    }
    if (const int error = ReadAllAt(fd_.get(), piece.to, piece.file_offset); error != 0)
      return FileReadError("it cannot be read", error);
    return CheckPiece(piece.to, piece.file_offset, piece.checksum);
  }

 private:
  const int directory_;
  const std::vector<std::string>& files_;
  size_t file_ = 0;
  UniqueFd fd_;  // of file_
};

}  // namespace

absl::Status CheckPiece(std::span<const std::byte> bytes, uint64_t file_offset, uint64_t checksum) {
  if (storage::Checksum(bytes) == checksum) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "it is damaged: the checksum of %d bytes at %d of the file is wrong", bytes.size(), file_offset));
}

std::vector<absl::Status> ReadPieces(int directory, const std::vector<std::string>& files,
                                     const std::vector<PieceToRead>& pieces, fabric::Fabric& fabric) {
  std::vector<absl::Status> outcomes(files.size());
  Mutex mutex;
  std::atomic<size_t> next = 0;
  const auto read = [&] {
    PieceReader reader(directory, files);
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const absl::Status status = reader.Read(pieces[i]);
      if (status.ok()) continue;
      if (MayBeWhole(status)) next = pieces.size();
      const MutexLock lock(mutex);
      absl::Status& outcome = outcomes[pieces[i].file];
      if (outcome.ok() || MayBeWhole(status)) outcome = status;
    }
  };
  const size_t threads = std::min<size_t>(
      pieces.size(), static_cast<size_t>(std::clamp(HostProcessors(), kReadersMin, kReadersMax)));
  std::vector<std::unique_ptr<fabric::Thread>> readers;
  for (size_t t = 0; t < threads; ++t)
    readers.push_back(fabric.StartThread(absl::StrFormat("nam-read-%d", t), read));
  readers.clear();  // joins
  return outcomes;
}

}  // namespace nam::memserver
