#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

/// Errors of a process that the system gives no more: RESOURCE_EXHAUSTED, told as 53200 (base/exhausted.h),
/// with the limit's name and value.
namespace nam {

/// A mapping of `what` was refused.
absl::Status NoAddressesLeft(absl::string_view what);
absl::Status NoThreadsLeft();
/// The error of NoAddressesLeft unless the process gets so many more addresses now.
absl::Status CheckRoomFor(absl::string_view what, size_t bytes);
/// True for these errors: no memory of a cluster, and no setting, would help.
bool IsProcessLimit(const absl::Status& status);

}  // namespace nam
