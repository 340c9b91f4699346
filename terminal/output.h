#pragma once

namespace nam {

/// The end of a command that may have printed results: what is still in buffers is written, and if any of it
/// was lost (a full disk), that is said on standard error and a `code` of success becomes kExitFailed. Who
/// closes its end of a pipe (`| head`) has seen enough: nothing is said.
int FinishOutput(int code);

}  // namespace nam
