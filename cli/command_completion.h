#pragma once

#include <string>

#include "terminal/command_description.h"

namespace nam::cli {

/// Tab behind `nam` in bash, zsh and fish: commands, options, the words that an option chooses from, files
/// and directories. Completion inside the SQL shell is cli/completion.h.
///
/// The script walks along the words of the command line, as far as they name commands, and then looks up what
/// may stand there. Everything is written out, so nothing is started at a Tab.

/// What --help calls the shells.
inline constexpr char kCompletionShells[] = "bash|zsh|fish";

struct CompletionOptions {
  std::string shell;
};

/// The script for one of kCompletionShells; empty for any other word.
std::string CompletionScript(const CommandDescription& program, const std::string& shell);

/// Prints it: an exit code.
int RunCompletion(const CompletionOptions& options, const CommandDescription& program);

}  // namespace nam::cli
