#include "cli/sql_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/completion.h"
#include "cli/interruptible_output.h"
#include "cli/line_editor.h"
#include "cli/shell.h"
#include "sql/bound_query.h"
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

/// Whether all that runs is one statement, or one command of the shell, whose result stands alone then.
bool IsOneStatement(const SqlOptions& options) {
  if (options.commands.size() != 1 || !options.files.empty()) return false;
  const std::vector<sql::ScriptPiece> pieces = sql::SplitStatements(options.commands[0]);
  return std::count_if(pieces.begin(), pieces.end(),
                       [](const sql::ScriptPiece& piece) { return !IsBlankSql(piece.text); }) <= 1;
}

/// Handles Ctrl-C while there is no statement to cancel: connecting and leaving may wait for silent servers.
class EndsProcess final : public Cancellable {
 public:
  void CancelFromSignal() override {
    constexpr std::string_view kText = "nam: interrupted\n";
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kText.data(), kText.size());
    _exit(kExitInterrupted);
  }
};

/// Runs the user's statements, once there is a session.
int RunShell(const SqlOptions& options, OutputFormat format, session::Session& session,
             catalog::Client& catalog, Interrupts& interrupts) {
  const InterruptibleOutput output(std::cout, STDOUT_FILENO, interrupts);
  ProgressLine progress;
  const bool interactive = options.commands.empty() && options.files.empty() && isatty(STDIN_FILENO) != 0;
  Shell shell(session, catalog, interrupts, std::cout, std::cerr,
              {.print = {.format = format, .expanded = options.expanded, .null_text = options.null_text},
               .timing = options.timing,
               .json_list = !interactive && !IsOneStatement(options),
               .keep_going = options.keep_going,
               .progress = &progress});
  if (!interactive) {
    const bool given = !options.commands.empty() || !options.files.empty();
    const int code = given ? RunScripts(shell, options) : shell.RunStream(std::cin, "");
    shell.EndScripts();
    return code;
  }
  std::cout << "nam: the network-attached-memory database. \\? for help, \\q to leave." << std::endl;
  Completer completer(catalog);
  const auto editor = OpenLineEditor(completer, interrupts, HistoryFile());
  return shell.RunInteractive(*editor);
}

}  // namespace

int RunSql(const SqlOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) {
    std::cerr << "nam: " << format.status().message() << "\n";
    return kExitUsage;
  }
  Interrupts interrupts;
  EndsProcess ends_process;
  interrupts.SetTarget(&ends_process);
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const auto session = session::Session::Open(**attachment);
  if (!session.ok()) return ReportNoConnection(session.status());
  interrupts.SetTarget(nullptr);
  const int code = RunShell(options, *format, **session, (*attachment)->catalog(), interrupts);
  interrupts.Clear();
  interrupts.SetTarget(&ends_process);
  return code;
}

}  // namespace nam::cli
