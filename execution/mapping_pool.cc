#include "execution/mapping_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace nam::execution {

MappingPool::~MappingPool() {
  Unmap(left_);
}

std::optional<MappingPool::Mapping> MappingPool::Map(uint64_t bytes, bool writable) {
  // Inaccessible memory does not count yet in a strict system, and faults on a stray pointer.
  void* const data = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return std::nullopt;
  return Mapping{static_cast<std::byte*>(data), bytes, writable ? bytes : 0};
}

std::optional<MappingPool::Mapping> MappingPool::Acquire(uint64_t bytes_least, uint64_t bytes_most) {
  const MutexLock lock(mutex_);
  const auto fits = std::find_if(left_.rbegin(), left_.rend(), [&](const Left& left) {
    return left.mapping.bytes >= bytes_least && left.mapping.bytes <= bytes_most;
  });
  if (fits == left_.rend()) return std::nullopt;
  const Mapping mapping = fits->mapping;
  left_bytes_ -= fits->touched_bytes;
  left_.erase(std::next(fits).base());
  return mapping;
}

void MappingPool::Leave(const Mapping& mapping, uint64_t touched_bytes) {
  std::vector<Left> over;
  if (touched_bytes > bounds_.of_one) {
    over.push_back({mapping, touched_bytes});
  } else {
    const MutexLock lock(mutex_);
    left_.push_back({mapping, touched_bytes});
    left_bytes_ += touched_bytes;
    auto kept = left_.begin();
    while (left_bytes_ > bounds_.of_all) left_bytes_ -= (kept++)->touched_bytes;
    over.assign(left_.begin(), kept);
    left_.erase(left_.begin(), kept);
  }
  Unmap(over);
}

/// Without the mutex: it takes long.
void MappingPool::Unmap(const std::vector<Left>& left) {
  for (const Left& one : left) NAM_CHECK(munmap(one.mapping.data, one.mapping.bytes) == 0);
}

}  // namespace nam::execution
