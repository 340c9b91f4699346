#pragma once

#include "absl/status/status.h"

namespace nam {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,         // the statement or the work failed
  kExitUsage = 2,          // usage or configuration
  kExitCannotConnect = 3,  // no cluster, or access denied
  kExitCheckFailed = 4,    // a wrong answer
  kExitInterrupted = 130,
};

/// The exit code of a command that ends with `status`. The caller handles connection failures.
inline int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  return absl::IsCancelled(status) ? kExitInterrupted : kExitFailed;
}

}  // namespace nam
