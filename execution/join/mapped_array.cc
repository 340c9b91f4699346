#include "execution/join/mapped_array.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/process_limits.h"
#include "execution/mapping_pool.h"

namespace nam::execution {
namespace {

constexpr uint64_t kLineBytes = 64;
// Below this size a system call takes longer than zeroing the bytes here.
constexpr uint64_t kLeastMappedBytes = 128 << 10;
// Tables are read at random: with pages of 2 MiB few look-ups also miss the processor's page tables.
constexpr uint64_t kLeastHugeBytes = 4 << 20;

/// Touching a table's new pages takes five times as long as zeroing those that another one has left.
MappingPool& LeftMappings() {
  static MappingPool& mappings = *new MappingPool({.of_one = 1 << 20, .of_all = 4 << 20});
  return mappings;
}

/// Zeroed; null if the system has none.
void* AcquireMapping(uint64_t bytes) {
  if (const std::optional<MappingPool::Mapping> left = LeftMappings().Acquire(bytes, bytes))
    return std::memset(left->data, 0, bytes);
  const std::optional<MappingPool::Mapping> made = MappingPool::Map(bytes, /*writable=*/true);
  if (!made) return nullptr;
  // A hint: without it the table works, but slower.
  if (bytes >= kLeastHugeBytes) (void)madvise(made->data, bytes, MADV_HUGEPAGE);
  return made->data;
}

}  // namespace

absl::StatusOr<MappedBytes> MappedBytes::Make(uint64_t bytes, MemoryBudget& budget) {
  MappedBytes out;
  if (bytes == 0) return out;
  if (!budget.Reserve(bytes)) {
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
    data = AcquireMapping(bytes);
  }
  if (data == nullptr) {
    budget.Release(bytes);
    return NoAddressesLeft(absl::StrFormat("%d MiB of a join's table", (bytes >> 20) + 1));
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
    LeftMappings().Leave({data_, bytes_, bytes_}, bytes_);
  }
  budget_->Release(bytes_);
}

}  // namespace nam::execution
