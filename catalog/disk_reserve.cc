#include "catalog/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/unique_fd.h"

namespace nam::catalog {

DiskReserve::DiskReserve(std::string store_path)
    : path_(store_path.empty() ? std::string() : std::move(store_path) + "-reserve") {}

void DiskReserve::Fill() {
  if (slices_ == kSlices || path_.empty()) return;
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  while (fd.valid() && slices_ < kSlices &&
         posix_fallocate(fd.get(), slices_ * kSliceBytes, kSliceBytes) == 0)
    ++slices_;
  // A failed allocation may leave a part of a slice.
  if (fd.valid() && ftruncate(fd.get(), slices_ * kSliceBytes) != 0) slices_ = 0;
}

bool DiskReserve::Spend() {
  if (slices_ == 0) return false;
  --slices_;
  return truncate(path_.c_str(), slices_ * kSliceBytes) == 0;
}

}  // namespace nam::catalog
