#pragma once

#include <memory>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "storage/scratch.h"

namespace nam::execution {

/// Opens slabs for this allocation of a session, from all living memory servers. They are the attempt's;
/// ReleaseScratch frees them, once the space is destroyed. The attachment outlives the space. Attempts begin
/// with different servers.
std::unique_ptr<storage::ScratchSpace> OpenScratch(catalog::Attachment& attachment, AllocationId allocation,
                                                   uint64_t attempt);

/// The payload of that error.
inline constexpr char kScratchFull[] = "nam/scratch-full";
/// The error of a query that scratch memory has no room for (53200); any other error unchanged.
absl::Status ScratchError(const absl::Status& status);

}  // namespace nam::execution
