#include "cli/sql_command.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/completion.h"
#include "cli/interruptible_output.h"
#include "cli/line_editor.h"
#include "cli/shell.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

std::string HistoryFile() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  const std::string path = absl::StrCat(home, "/.nam_history");
  const bool usable =
      access(path.c_str(), F_OK) == 0 ? access(path.c_str(), R_OK | W_OK) == 0 : access(home, W_OK) == 0;
  return usable ? path : std::string();
}

int RunScripts(Shell& shell, const SqlOptions& options) {
  int result = kExitOk;
  const auto ends = [&](int code) {
    if (code != kExitOk) result = code;
    return code == kExitInterrupted || (code != kExitOk && !options.keep_going);
  };
  for (const std::string& command : options.commands) {
    if (ends(shell.RunScript(command, ""))) return result;
  }
  for (const std::string& file : options.files) {
    if (ends(file == "-" ? shell.RunStream(std::cin, "") : shell.RunFile(file))) return result;
  }
  return result;
}

}  // namespace

int RunSql(const SqlOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) {
    std::cerr << "nam: " << format.status().message() << "\n";
    return kExitUsage;
  }
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const auto session = session::Session::Open(**attachment);
  if (!session.ok()) return ReportNoConnection(session.status());

  Interrupts interrupts;
  const InterruptibleOutput output(std::cout, STDOUT_FILENO, interrupts);
  ProgressLine progress;
  catalog::Client& catalog = (*attachment)->catalog();
  Shell shell(**session, catalog, interrupts, std::cout, std::cerr,
              {.print = {.format = *format, .expanded = options.expanded, .null_text = options.null_text},
               .timing = options.timing,
               .keep_going = options.keep_going,
               .progress = &progress});
  if (!options.commands.empty() || !options.files.empty()) return RunScripts(shell, options);
  if (isatty(STDIN_FILENO) == 0) return shell.RunStream(std::cin, "");
  std::cout << "nam: the network-attached-memory database. \\? for help, \\q to leave." << std::endl;
  Completer completer(catalog);
  const auto editor = OpenLineEditor(completer, interrupts, HistoryFile());
  return shell.RunInteractive(*editor);
}

}  // namespace nam::cli
