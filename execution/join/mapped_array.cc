#include "execution/join/mapped_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "absl/strings/str_format.h"

namespace nam::execution {
namespace {

constexpr uint64_t kLineBytes = 64;
// Below it a system call takes longer than to zero the bytes here.
constexpr uint64_t kLeastMappedBytes = 128 << 10;
// Tables are read at random: with pages of 2 MiB few of the look-ups miss the processor's page tables too.
constexpr uint64_t kLeastHugeBytes = 4 << 20;

/// Mappings that tables have left, for the next ones: of a short query's time, the first touches of their
/// pages are a tenth, and zeroing them here is a fiftieth. Of at most 1 MiB each, and of 4 MiB in all, which
/// no budget counts. Of the process; any thread.
class LeftMappings {
 public:
  static LeftMappings& Instance() {
    static LeftMappings& mappings = *new LeftMappings;
    return mappings;
  }

  /// Zeroed; null if none has just this size.
  void* Take(uint64_t bytes) {
    void* data = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto fits = std::find_if(left_.begin(), left_.end(),
                                     [&](const Mapping& mapping) { return mapping.bytes == bytes; });
      if (fits == left_.end()) return nullptr;
      data = fits->data;
      left_bytes_ -= bytes;
      left_.erase(fits);
    }
    return std::memset(data, 0, bytes);
  }

  /// False if it is not kept.
  bool Give(void* data, uint64_t bytes) {
    if (bytes > kBytesMax) return false;
    std::vector<Mapping> oldest;
    {
      const std::lock_guard lock(mutex_);
      left_.push_back({data, bytes});
      left_bytes_ += bytes;
      size_t count = 0;
      for (; left_bytes_ > kLeftBytesMax; ++count) left_bytes_ -= left_[count].bytes;
      oldest.assign(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
      left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    for (const Mapping& mapping : oldest) munmap(mapping.data, mapping.bytes);
    return true;
  }

 private:
  struct Mapping {
    void* data;
    uint64_t bytes;
  };
  static constexpr uint64_t kBytesMax = 1 << 20;
  static constexpr uint64_t kLeftBytesMax = 4 << 20;

  std::mutex mutex_;
  std::vector<Mapping> left_;  // the oldest first
  uint64_t left_bytes_ = 0;
};

}  // namespace

absl::StatusOr<MappedBytes> MappedBytes::Make(uint64_t bytes, MemoryBudget& budget) {
  MappedBytes out;
  if (bytes == 0) return out;
  if (!budget.Take(bytes)) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a table of %d MiB for a join is more than what the query may still take on a server: %d of %d MiB "
        "are in use",
        (bytes >> 20) + 1, budget.used() >> 20, budget.bytes() >> 20));
  }
  void* data = nullptr;
  if (bytes < kLeastMappedBytes) {
    data = std::aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
    if (data != nullptr) std::memset(data, 0, bytes);
  } else if (data = LeftMappings::Instance().Take(bytes); data == nullptr) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) data = nullptr;
    // A wish: without it the table is right, and slower.
    if (data != nullptr && bytes >= kLeastHugeBytes) (void)madvise(data, bytes, MADV_HUGEPAGE);
  }
  if (data == nullptr) {
    budget.Give(bytes);
    return absl::ResourceExhaustedError(
        absl::StrFormat("the system has no %d MiB for a join's table", (bytes >> 20) + 1));
  }
  out.data_ = static_cast<std::byte*>(data);
  out.bytes_ = bytes;
  out.budget_ = &budget;
  return out;
}

MappedBytes::~MappedBytes() {
  if (data_ == nullptr) return;
  if (bytes_ < kLeastMappedBytes) {
    std::free(data_);
  } else if (!LeftMappings::Instance().Give(data_, bytes_)) {
    munmap(data_, bytes_);
  }
  budget_->Give(bytes_);
}

}  // namespace nam::execution
