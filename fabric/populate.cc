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

namespace nam::fabric {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 20;
constexpr size_t kThreadsMax = 16;

/// 0 or an errno.
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

}  // namespace

int Populate(std::byte* data, size_t bytes) {
  const size_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  std::atomic<size_t> next{0};
  std::atomic<int> error{0};
  const auto work = [&] {
    for (size_t chunk; error == 0 && (chunk = next.fetch_add(1)) < chunks;) {
      const size_t at = chunk * kChunkBytes;
      const int failed = PopulateChunk(data + at, std::min(kChunkBytes, bytes - at));
      if (failed != 0) error = failed;
    }
  };
  const size_t cpus = static_cast<size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 2L));
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 1; i < std::min({chunks, cpus, kThreadsMax}); ++i) {
    threads.push_back(StartRealThread("nam-populate", work));
  }
  work();
  threads.clear();
  return error;
}

}  // namespace nam::fabric
