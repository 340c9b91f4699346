#include "storage/allocation_keys.h"

#include <iterator>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::storage {

void AllocationKeys::Add(RemotePtr<void> begin, uint64_t bytes, fabric::RemoteKey rkey) {
  NAM_CHECK(bytes > 0 && extents_.emplace(begin, Extent{bytes, rkey}).second, "an extent handed out twice");
}

absl::StatusOr<fabric::RemoteAddress> AllocationKeys::Resolve(RemotePtr<void> pointer, uint64_t bytes) const {
  const auto after = extents_.upper_bound(pointer);
  if (after != extents_.begin()) {
    const auto& [begin, extent] = *std::prev(after);
    // Pointers of another server are farther away than any extent is long.
    const uint64_t offset = pointer.raw() - begin.raw();
    if (offset < extent.bytes && bytes <= extent.bytes - offset) {
      return fabric::RemoteAddress{extent.rkey, offset};
    }
  }
  return absl::OutOfRangeError(
      absl::StrFormat("%d bytes at offset %d of memory server %d are not in one extent of the allocation",
                      bytes, pointer.offset(), pointer.server().value()));
}

}  // namespace nam::storage
