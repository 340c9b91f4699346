#pragma once

#include <string>

namespace nam::cli {

/// Asks on the terminal, unless the user has said `yes` before, for what cannot be taken back. kExitOk: go
/// on; kExitFailed after a no; kExitUsage without a terminal to ask.
int Confirm(const std::string& question, bool yes);

}  // namespace nam::cli
