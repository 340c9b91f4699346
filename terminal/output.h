#pragma once

namespace nam {

/// Ends a command that may have printed results: writes the buffers. If output was lost (a full disk),
/// reports it on standard error and turns a successful `code` into kExitFailed. A reader that closes its end
/// of a pipe (`| head`) has seen enough: no report.
int FinishOutput(int code);

}  // namespace nam
