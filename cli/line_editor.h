#pragma once

#include <memory>
#include <string>

#include "cli/completion.h"
#include "cli/interrupts.h"
#include "cli/shell.h"

namespace nam::cli {

/// Line editing with history and completion on the terminal, by libedit. The history lives in
/// `history_file`, if that can be read and written.
std::unique_ptr<LineReader> OpenLineEditor(Completer& completer, Interrupts& interrupts,
                                           const std::string& history_file);

}  // namespace nam::cli
