#include "fabric/anonymous_mapping.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "fabric/populate.h"

namespace nam::fabric {

absl::StatusOr<AnonymousMapping> AnonymousMapping::Create(size_t bytes, bool huge_pages, bool populate) {
  if (bytes == 0) return absl::InvalidArgumentError("a memory region of 0 bytes");
  const auto short_of_memory = [bytes](int error) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no memory for a region of %d bytes (%s): allocate less, or see `ulimit -v`, the control "
        "group's memory limit and vm.overcommit_memory",
        bytes, strerror(error)));
  };
  if (bytes > SIZE_MAX / 2) return short_of_memory(ENOMEM);
  const bool align = huge_pages && bytes >= kHugePageBytes;
  const size_t mapped = (bytes + 4095) / 4096 * 4096;
  const size_t reserved = mapped + (align ? kHugePageBytes : 0);
  void* got = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return short_of_memory(errno);
  auto* data = static_cast<std::byte*>(got);
  if (align) {
    // Huge pages need an aligned start: give back the rest on both sides.
    const size_t before =
        (kHugePageBytes - reinterpret_cast<uintptr_t>(data) % kHugePageBytes) % kHugePageBytes;
    if (before > 0) munmap(data, before);
    munmap(data + before + mapped, kHugePageBytes - before);
    data += before;
    madvise(data, mapped, MADV_HUGEPAGE);  // best effort
  }
  AnonymousMapping mapping(data, mapped);
  if (populate) {
    if (const int error = Populate(data, mapped); error != 0) return short_of_memory(error);
  }
  return mapping;
}

AnonymousMapping::AnonymousMapping(AnonymousMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

AnonymousMapping::~AnonymousMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace nam::fabric
