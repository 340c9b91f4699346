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

/// Ends a command that may have printed results: writes the buffers. If output was lost (a full disk),
/// reports it on standard error and turns a successful `code` into kExitFailed. A reader that closes its end
/// of a pipe (`| head`) has seen enough: no report.
int FinishOutput(int code);

}  // namespace nam
