#include "fabric/share.h"

#include "absl/strings/str_format.h"

namespace nam::fabric {

absl::Status CheckShare(const MemoryRegion& region, size_t offset, size_t bytes, Access access) {
  if (offset % 8 != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a part of a region begins at a multiple of 8, not at %d", offset));
  }
  if (bytes == 0 || offset > region.bytes() || bytes > region.bytes() - offset) {
    return absl::OutOfRangeError(absl::StrFormat("%d bytes at offset %d are no part of a region of %d bytes",
                                                 bytes, offset, region.bytes()));
  }
  if (region.access() != Access::kNone && !Allows(region.access(), access)) {
    return absl::FailedPreconditionError(
        "a part of a region cannot give more rights than the region; allocate the region with all that its "
        "parts may give, or as private");
  }
  return absl::OkStatus();
}

}  // namespace nam::fabric
