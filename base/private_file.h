#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

/// Files that a process trusts. The checks apply to the opened file, so it cannot be exchanged in between. A
/// pipe without a writer does not block. `what` is for messages: `the secret nam.secret`.
namespace nam {

/// The error for a file that cannot be read: NOT_FOUND for ENOENT, else FAILED_PRECONDITION.
absl::Status CannotRead(const std::string& what, int error);

/// FAILED_PRECONDITION unless it is a regular file.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, const std::string& what);
/// FAILED_PRECONDITION unless it is a regular file of this user, closed to all others.
absl::Status CheckPrivateFile(int fd, const std::string& what);
/// Reads the whole file. FAILED_PRECONDITION beyond a megabyte.
absl::StatusOr<std::string> ReadAll(int fd, const std::string& what);

}  // namespace nam
