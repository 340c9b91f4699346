#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

/// Files that a process believes: what was opened is what is checked, so nobody can exchange it in between. A
/// pipe without a writer holds nobody up. `what` is for messages: `the secret nam.secret`.
namespace nam {

/// That it cannot be read, for this error of the system: NOT_FOUND for ENOENT, else FAILED_PRECONDITION.
absl::Status CannotRead(const std::string& what, int error);

/// FAILED_PRECONDITION unless it is a regular file.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, const std::string& what);
/// FAILED_PRECONDITION unless it is a regular file of this user, closed to all others.
absl::Status CheckPrivateFile(int fd, const std::string& what);
/// All of it. FAILED_PRECONDITION beyond a megabyte.
absl::StatusOr<std::string> ReadAll(int fd, const std::string& what);

}  // namespace nam
