#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// What every provider's Share refuses. Rights beyond the region's own are FAILED_PRECONDITION unless it is
/// private (kNone): memory that was handed out for reading may be sealed against ever being written.
absl::Status CheckShare(const MemoryRegion& region, size_t offset, size_t bytes, Access access);

}  // namespace nam::fabric
