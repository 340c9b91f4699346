#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam::csv {

/// Pipes and devices, whose other side may stand still: waits for it end with CANCELLED once the statement is
/// cancelled that the thread executes (base/interruption.h).

/// Until `fd` has room (POLLOUT) or bytes (POLLIN), or has failed. Regular files are always ready.
absl::Status AwaitReady(int fd, short events);

/// Opens a FIFO to write to it, once it has a reader; write() does not wait. An invalid descriptor: errno
/// says why.
absl::StatusOr<UniqueFd> OpenFifoToWrite(const std::string& path);

}  // namespace nam::csv
