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
  if (filled_ || path_.empty()) return;
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return;
  filled_ = posix_fallocate(fd.get(), 0, kReserveBytes) == 0;
  if (!filled_) unlink(path_.c_str());
}

bool DiskReserve::Spend() {
  return std::exchange(filled_, false) && unlink(path_.c_str()) == 0;
}

}  // namespace nam::catalog
