#pragma once

#include <memory>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "storage/scratch.h"

namespace nam::execution {

/// Slabs for this allocation of a session, from all memory servers that live now; they are the attempt's, and
/// ReleaseScratch frees them, once the space is gone. The attachment outlives the space.
/// Attempts begin with different servers.
std::unique_ptr<storage::ScratchSpace> OpenScratch(catalog::Attachment& attachment, AllocationId allocation,
                                                   uint64_t attempt);

/// The payload of that error.
inline constexpr char kScratchFull[] = "nam/scratch-full";
/// What a query says that scratch memory has no room for (53200); any other error as it is.
absl::Status ScratchError(const absl::Status& status);

}  // namespace nam::execution
