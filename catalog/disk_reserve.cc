#include "catalog/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/unique_fd.h"

namespace nam::catalog {

DiskReserve::DiskReserve(std::string store_path)
    : path_(store_path.empty() ? std::string() : std::move(store_path) + "-reserve") {}

void DiskReserve::Fill() {
  if (slices_ == kSlices || path_.empty()) return;
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct statvfs disk;
  struct stat file;
  if (!fd.valid() || fstatvfs(fd.get(), &disk) != 0 || fstat(fd.get(), &file) != 0) return;
  slices_ = std::min(kSlices, file.st_size / kSliceBytes);  // also what a former catalog has left
  const auto free_bytes = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  const int64_t most = std::min(kSlices, free_bytes / kFreePerReserved / kSliceBytes);
  while (slices_ < most && posix_fallocate(fd.get(), slices_ * kSliceBytes, kSliceBytes) == 0) ++slices_;
  // A failed allocation may leave a part of a slice.
  if (ftruncate(fd.get(), slices_ * kSliceBytes) != 0) slices_ = 0;
}

bool DiskReserve::Spend() {
  if (slices_ == 0) return false;
  --slices_;
  return truncate(path_.c_str(), slices_ * kSliceBytes) == 0;
}

}  // namespace nam::catalog
