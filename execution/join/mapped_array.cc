#include "execution/join/mapped_array.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"

namespace nam::execution {
namespace {

constexpr uint64_t kLineBytes = 64;
// Below it a system call takes longer than to zero the bytes here.
constexpr uint64_t kLeastMappedBytes = 128 << 10;
// Tables are read at random: with pages of 2 MiB few of the look-ups miss the processor's page tables too.
constexpr uint64_t kLeastHugeBytes = 4 << 20;

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
  } else {
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
  } else {
    munmap(data_, bytes_);
  }
  budget_->Give(bytes_);
}

}  // namespace nam::execution
