#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "catalog/client.h"
#include "cli/interrupts.h"
#include "cli/json_results.h"
#include "session/session.h"
#include "terminal/progress_line.h"
#include "terminal/row_printer.h"
#include "terminal/table_printer.h"

namespace nam::cli {

struct ShellOptions {
  PrintOptions print;
  bool timing = false;
  bool json_list = false;            // with JSON: the results of all statements are one document
  bool keep_going = false;           // runs scripts past the first error
  ProgressLine* progress = nullptr;  // shows the progress of long queries in an interactive shell
};

/// The source of an interactive shell's lines.
class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  virtual ~LineReader() = default;
  virtual Result Read(const std::string& prompt, std::string& line) = 0;
  virtual void AddToHistory(const std::string& statement) = 0;
};

/// Runs SQL statements and meta commands of one session:
///
///     lines ─▶ buffer ─▶ SplitStatements ─▶ Session::Execute ─ rows as they come ─▶ row printer ─▶ out
///                 └─ `\…` at the start of a statement ─▶ meta command
///
/// Errors go to `err`. If the reader of `out` is gone, the running statement and the shell end silently. Used
/// by one thread.
class Shell {
 public:
  Shell(session::Session& session, catalog::Client& catalog, Interrupts& interrupts, std::ostream& out,
        std::ostream& err, ShellOptions options);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Runs a whole script; `name` precedes its errors (empty: no name). The last statement needs no semicolon.
  /// kExitOk, kExitFailed if a statement failed, kExitInterrupted.
  int RunScript(std::string_view script, const std::string& name);
  /// As RunScript, line by line as they arrive. Rows of COPY … FROM STDIN are the lines behind it, up to
  /// `\.`; those of RunScript's are the process's standard input.
  int RunStream(std::istream& input, const std::string& name);
  /// As RunStream, for a file; kExitFailed if it cannot be read.
  int RunFile(const std::string& path);
  /// After all scripts: ends the document of ShellOptions::json_list.
  void EndScripts();
  /// Until \q or the end of input; errors do not end it.
  int RunInteractive(LineReader& reader);

 private:
  struct Cursor;
  class Rows;

  int RunLines(std::istream& input, Cursor at);
  int FeedLine(const std::string& line, Cursor& at);
  int RunComplete(Cursor& at);
  int FinishScript(Cursor& at);
  int NoteExitCode(int code, int& result);
  int Execute(const std::string& statement, Cursor& at, size_t line);
  int RunCopy(const std::string& arguments, Cursor& at);
  int ReportError(const std::string& statement, const absl::Status& status, const Cursor& at, size_t line);
  int EndClosed(const std::string& statement, bool done, const Cursor& at, size_t line);
  /// Ends the script after an interrupt that has reached no statement. Reports it once.
  int EndInterrupted();
  absl::Status Print(const session::ResultSet& result, RowPrinter& printer);
  void PrintCommand(const std::string& command);
  void TellWarnings(const session::ResultSet& result);
  void PrintReport(const session::ResultSet& report);

  // meta_commands.cc
  int RunMeta(std::string_view line, Cursor& at);
  int Describe(const std::string& written);
  int DescribeAll();
  int ListTable(const std::string& written);
  int PrintTables(const std::vector<proto::Table>& tables);
  /// The table or view of a name as the user writes it.
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const std::string& written);
  int ListServers();
  int ListOthers(session::ResultSet (*report)(const std::vector<proto::Table>& entries));
  int IncludeFile(const std::string& path);
  int Toggle(bool& setting, const std::string& argument, const char* name);
  int ReportMetaError(const absl::Status& status);
  void PrintHelp();

  session::Session& session_;
  catalog::Client& catalog_;
  Interrupts& interrupts_;
  std::ostream& out_;
  std::ostream& err_;
  ShellOptions options_;
  JsonResults results_;  // of ShellOptions::json_list
  bool interactive_ = false;
  bool quit_ = false;
  bool told_interrupt_ = false;  // the one that was seen
  bool printing_ = false;        // rows of a running statement: no progress between them
  int include_depth_ = 0;
};

/// True for text without a statement: blanks, comments and lone semicolons.
bool IsBlankSql(std::string_view text);

/// A position in a script.
struct Shell::Cursor {
  std::string name;                // the script's
  std::string buffer;              // lines of an incomplete statement
  size_t buffer_line = 1;          // its first line
  size_t lines = 0;                // read so far
  std::istream* script = nullptr;  // has the rows behind COPY … FROM STDIN; null: standard input has them
};

}  // namespace nam::cli
