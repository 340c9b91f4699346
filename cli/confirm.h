#pragma once

#include <string>

namespace nam::cli {

/// Asks on the terminal before an irreversible action, unless the user has said `yes` before. kExitOk: go on;
/// kExitFailed after a no; kExitUsage without a terminal.
int Confirm(const std::string& question, bool yes);

}  // namespace nam::cli
