#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Durable replacement of small files, and the errors of writing files.
namespace nam {

/// The error for a failed write. `error` is an errno: RESOURCE_EXHAUSTED if the disk or quota is full or the
/// file too large, else INTERNAL.
absl::Status WriteError(const std::string& message, int error);

/// Atomically replaces file `name` in the directory by one that only this user may read. OK: the new contents
/// are durable. On an error, RESOURCE_EXHAUSTED or INTERNAL as in WriteError, the former file stays. `what`
/// names the file in messages.
absl::Status ReplacePrivateFile(int directory, const std::string& name, std::string_view bytes,
                                const std::string& what);

}  // namespace nam
