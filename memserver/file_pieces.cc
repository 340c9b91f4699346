#include "memserver/file_pieces.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/checksum.h"

namespace nam::memserver {
namespace {

constexpr unsigned kReadersMin = 4;  // a disk likes concurrent requests, even with few processors
constexpr unsigned kReadersMax = 16;

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

std::string DescribeReadError(int error) {
  return error == kEndsTooEarly ? "it ends too early" : std::strerror(error);
}

int Reserve(int fd, uint64_t bytes) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ? 0 : errno;
}

void StartWriteback(int fd, uint64_t file_offset, uint64_t bytes) {
  (void)sync_file_range(fd, static_cast<off_t>(file_offset), static_cast<off_t>(bytes),
                        SYNC_FILE_RANGE_WRITE);
}

std::vector<std::string> ReadPieces(const std::vector<PieceToRead>& pieces, size_t files,
                                    fabric::Fabric& fabric) {
  std::vector<std::string> wrong(files);
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  const auto read = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const PieceToRead& piece = pieces[i];
      const int error = ReadAllAt(piece.fd, piece.to, piece.file_offset);
      if (error == 0 && storage::Checksum(piece.to) == piece.checksum) continue;
      const std::lock_guard lock(mutex);
      if (!wrong[piece.file].empty()) continue;
      wrong[piece.file] =
          error != 0 ? absl::StrCat("it cannot be read: ", DescribeReadError(error))
                     : absl::StrFormat("it is damaged: the checksum of %d bytes at %d of the file is wrong",
                                       piece.to.size(), piece.file_offset);
    }
  };
  const size_t threads = std::min<size_t>(
      pieces.size(), std::clamp(std::thread::hardware_concurrency(), kReadersMin, kReadersMax));
  std::vector<std::unique_ptr<fabric::Thread>> readers;
  for (size_t t = 0; t < threads; ++t)
    readers.push_back(fabric.StartThread(absl::StrFormat("nam-read-%d", t), read));
  readers.clear();  // joins
  return wrong;
}

}  // namespace nam::memserver
