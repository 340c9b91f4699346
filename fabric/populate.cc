#include "fabric/populate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "fabric/threads.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace nam::fabric {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 20;
constexpr size_t kThreadsMax = 16;
constexpr int kCollapsesMax = 4;  // tries per page while the kernel says to try again

/// Returns 0 or an errno.
int PopulateChunk(std::byte* data, size_t bytes) {
  while (madvise(data, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return errno;
    // Linux before 5.14.
    for (size_t i = 0; i < bytes; i += 4096) *reinterpret_cast<volatile std::byte*>(data + i) = std::byte{0};
    return 0;
  }
  return 0;
}

/// Returns 0 or an errno. The kernel makes a huge page only if a part of it is present.
int CollapsePage(std::byte* page) {
  *reinterpret_cast<volatile std::byte*>(page) = std::byte{0};
  for (int i = 0; i < kCollapsesMax; ++i) {
    if (madvise(page, kHugePageBytes, MADV_COLLAPSE) == 0) return 0;
    if (errno != EINTR && errno != EAGAIN) break;
  }
  return errno;
}

/// Runs step(i) for i in 0 … steps - 1 on several threads until one fails; returns 0 or its errno.
template <typename Step>
int InParallel(size_t steps, const Step& step) {
  std::atomic<size_t> next{0};
  std::atomic<int> error{0};
  const auto work = [&] {
    for (size_t i; error == 0 && (i = next.fetch_add(1)) < steps;) {
      if (const int failed = step(i); failed != 0) error = failed;
    }
  };
  const size_t cpus = static_cast<size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 2L));
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 1; i < std::min({steps, cpus, kThreadsMax}); ++i) {
    threads.push_back(StartRealThread("nam-populate", work));
  }
  work();
  threads.clear();
  return error;
}

}  // namespace

int Populate(std::byte* data, size_t bytes) {
  return InParallel((bytes + kChunkBytes - 1) / kChunkBytes, [&](size_t chunk) {
    const size_t at = chunk * kChunkBytes;
    return PopulateChunk(data + at, std::min(kChunkBytes, bytes - at));
  });
}

bool PopulateHuge(std::byte* data, size_t bytes) {
  if (madvise(data, bytes, MADV_HUGEPAGE) != 0) return false;
  return InParallel(bytes / kHugePageBytes,
                    [&](size_t page) { return CollapsePage(data + page * kHugePageBytes); }) == 0;
}

}  // namespace nam::fabric
