#include "cli/shell.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/copy_command.h"
#include "cli/rows_in_script.h"
#include "cli/session_cancel.h"
#include "sql/bound_query.h"
#include "sql/error_text.h"
#include "terminal/exit_codes.h"
#include "terminal/units.h"
#include "types/sql_error.h"

namespace nam::cli {
namespace {

constexpr char kPrompt[] = "nam=> ";
constexpr char kContinuationPrompt[] = "nam-> ";

constexpr std::string_view kWhitespace = " \t\r\n\f\v";

std::string_view TrimLeft(std::string_view text) {
  const size_t start = text.find_first_not_of(kWhitespace);
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

/// The text after a leading comment; `text` itself if there is none.
std::string_view SkipComment(std::string_view text) {
  if (text.starts_with("--")) {
    const size_t end = text.find('\n');
    return end == std::string_view::npos ? std::string_view() : text.substr(end);
  }
  if (!text.starts_with("/*")) return text;
  int depth = 0;  // PostgreSQL's comments nest
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const std::string_view two = text.substr(i, 2);
    if (two == "/*") ++depth, ++i;
    if (two == "*/" && ++i && --depth == 0) return text.substr(i + 1);
  }
  return text;  // not closed: the parser reports it
}

/// The text after blanks, comments and lone semicolons before a statement.
std::string_view SkipBlanks(std::string_view text) {
  while (true) {
    text = TrimLeft(text);
    const std::string_view rest = text.starts_with(';') ? text.substr(1) : SkipComment(text);
    if (rest.size() == text.size()) return text;
    text = rest;
  }
}

/// An aligned table needs memory for all of its rows.
absl::Status WithFormatHint(const absl::Status& status, const RowPrinter& printer) {
  std::optional<SqlError> error = SqlErrorOf(status);
  if (!error.has_value() || error->sqlstate != sqlstate::kOutOfMemory || printer.bytes_held() == 0)
    return status;
  absl::StrAppend(&error->hint, error->hint.empty() ? "" : "; ",
                  "--format=csv, and \\x in this shell, print rows as they come, however many there are");
  return ToStatus(*error);
}

/// The error after Ctrl-C: it ended the statement, or if that is `done`, the printing of its rows.
absl::Status CancelledByUser(bool done) {
  return UserError(sqlstate::kCancelled,
                   absl::StrCat("canceling ", done ? "output" : "statement", " due to user request"), -1,
                   done ? "the statement itself is done" : "");
}

}  // namespace

bool IsBlankSql(std::string_view text) {
  return SkipBlanks(text).empty();
}

Shell::Shell(session::Session& session, catalog::Client& catalog, Interrupts& interrupts, std::ostream& out,
             std::ostream& err, ShellOptions options)
    : session_(session),
      catalog_(catalog),
      interrupts_(interrupts),
      out_(out),
      err_(err),
      options_(std::move(options)),
      results_(out) {
  options_.json_list = options_.json_list && options_.print.format == OutputFormat::kJson;
  options_.print.json_member = options_.json_list;
}

Shell::~Shell() = default;

int Shell::RunScript(std::string_view script, const std::string& name) {
  std::istringstream input{std::string(script)};
  return RunLines(input, {.name = name});
}

int Shell::RunStream(std::istream& input, const std::string& name) {
  return RunLines(input, {.name = name, .script = &input});
}

int Shell::RunLines(std::istream& input, Cursor at) {
  int result = kExitOk;
  std::string line;
  while (!quit_ && !interrupts_.Seen() && std::getline(input, line)) {
    if (at.lines == 0 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
    if (NoteExitCode(FeedLine(line, at), result) != kExitOk) return result;
  }
  if (interrupts_.Seen()) {
    out_.clear();
    return EndInterrupted();
  }
  if (!quit_) NoteExitCode(FinishScript(at), result);
  return result;
}

int Shell::RunFile(const std::string& path) {
  std::error_code unknown;
  const bool directory = std::filesystem::is_directory(path, unknown);  // a directory opens, but has no lines
  std::ifstream file(path);
  if (file && !directory) return RunStream(file, path);
  out_.flush();
  err_ << "ERROR:  cannot read " << path << ": " << (directory ? "it is a directory" : std::strerror(errno))
       << "\n";
  err_.flush();
  return kExitFailed;
}

/// Notes how a piece of a script ended; not kExitOk if the script ends with it.
int Shell::NoteExitCode(int code, int& result) {
  if (code != kExitOk && result != kExitInterrupted) result = code;
  return code == kExitFailed && options_.keep_going ? kExitOk : code;
}

int Shell::RunInteractive(LineReader& reader) {
  interactive_ = true;
  if (options_.progress != nullptr && options_.progress->shown()) {
    session_.OnProgress([this, progress = options_.progress](const session::QueryProgress& now) {
      if (!printing_) progress->Show(ProgressText(now));
    });
  }
  Cursor at;
  while (!quit_) {
    std::string line;
    switch (reader.Read(at.buffer.empty() ? kPrompt : kContinuationPrompt, line)) {
      case LineReader::Result::kEnd:
        quit_ = true;
        continue;
      case LineReader::Result::kInterrupted:
        at = Cursor();
        break;
      case LineReader::Result::kLine: {
        const std::string statement = at.buffer + line;
        FeedLine(line, at);
        if (at.buffer.empty() && !TrimLeft(statement).empty()) reader.AddToHistory(statement);
        break;
      }
    }
    if (interrupts_.Seen()) {  // it has ended writes, and ends no later one
      out_.clear();
      err_.clear();
    }
    interrupts_.Clear();
    told_interrupt_ = false;
  }
  return kExitOk;
}

int Shell::FeedLine(const std::string& line, Cursor& at) {
  ++at.lines;
  if (line.find('\0') != std::string::npos) {
    at.buffer.clear();
    return ReportError(line, UserError(sqlstate::kBadEncoding, "SQL text cannot hold a NUL byte", -1), at,
                       at.lines);
  }
  if (at.buffer.empty()) {
    at.buffer_line = at.lines;
    if (interactive_ && (line == "quit" || line == "exit")) return RunMeta("\\q", at);
    if (interactive_ && line == "help") return RunMeta("\\?", at);
    if (const std::string_view text = TrimLeft(line); text.starts_with("\\")) return RunMeta(text, at);
  }
  absl::StrAppend(&at.buffer, line, "\n");
  // Only a semicolon completes a statement.
  if (line.find(';') != std::string::npos) return RunComplete(at);
  if (IsBlankSql(at.buffer)) at.buffer.clear();
  return kExitOk;
}

int Shell::RunComplete(Cursor& at) {
  const std::string buffer = std::exchange(at.buffer, {});
  std::string_view rest = buffer;
  int result = kExitOk;
  for (const sql::ScriptPiece& piece : sql::SplitStatements(buffer)) {
    const std::string_view start = SkipBlanks(rest);
    const std::string_view passed = rest.substr(0, rest.size() - start.size());
    at.buffer_line += static_cast<size_t>(std::count(passed.begin(), passed.end(), '\n'));
    rest = start;
    if (!piece.complete) {
      at.buffer = rest;
      break;
    }
    if (NoteExitCode(Execute(piece.text, at, at.buffer_line), result) != kExitOk || quit_) break;
    at.buffer_line += static_cast<size_t>(std::count(piece.text.begin(), piece.text.end(), '\n'));
    // Comments may stand between a statement and its semicolon; SkipBlanks passes them.
    rest.remove_prefix(std::min(rest.size(), piece.text.size()));
  }
  return result;
}

int Shell::FinishScript(Cursor& at) {
  if (IsBlankSql(at.buffer)) return kExitOk;
  at.buffer += "\n;";
  const int result = RunComplete(at);
  if (result != kExitOk || at.buffer.empty()) return result;
  // Even a semicolon does not complete it: a string or a comment is open. The parser reports that.
  return Execute(at.buffer.substr(0, at.buffer.size() - 2), at, at.buffer_line);
}

/// Passes a statement's rows to the printer.
class Shell::Rows final : public session::RowReceiver {
 public:
  /// `input`: the rows of COPY … FROM STDIN, if they are in a script.
  Rows(Shell& shell, RowPrinter& printer, RowsInScript* input)
      : shell_(shell), printer_(printer), input_(input) {}
  ~Rows() override { shell_.printing_ = false; }

  absl::Status Begin(const std::vector<session::ResultSet::Column>& columns) override {
    if (printer_.prints_at_once()) {
      shell_.printing_ = true;
      if (shell_.options_.progress != nullptr) shell_.options_.progress->Clear();
    }
    // Rows without columns are counted, not printed.
    prints_ = !columns.empty();
    begun_ = prints_;
    if (prints_ && shell_.options_.json_list) shell_.results_.BeginRows();
    return prints_ ? printer_.Begin(columns) : absl::OkStatus();
  }
  absl::Status Add(const session::ResultBatch& rows) override {
    // A session checks for it as well, but not between any two batches.
    if (shell_.interrupts_.Seen()) return CancelledByUser(/*done=*/false);
    return prints_ ? printer_.Add(rows) : absl::OkStatus();
  }
  absl::Status Write(std::string_view bytes) override {
    if (shell_.interrupts_.Seen()) return CancelledByUser(/*done=*/false);
    shell_.printing_ = wrote_ = true;
    if (shell_.options_.progress != nullptr) shell_.options_.progress->Clear();
    shell_.out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    closed_ = !shell_.out_;
    return closed_ ? absl::CancelledError("the output was closed") : absl::OkStatus();
  }
  std::unique_ptr<csv::ByteSource> Input() override {
    return input_ == nullptr ? RowReceiver::Input() : input_->Open();
  }
  uint64_t bytes_held() const override { return printer_.bytes_held(); }
  /// Whether the printer has begun.
  bool begun() const { return begun_; }
  /// Whether rows of COPY … TO STDOUT came: these are the only output.
  bool wrote() const { return wrote_; }
  /// Whether the output took no more of them.
  bool closed() const { return closed_; }

 private:
  Shell& shell_;
  RowPrinter& printer_;
  RowsInScript* const input_;
  bool begun_ = false, prints_ = true, wrote_ = false, closed_ = false;
};

int Shell::Execute(const std::string& statement, Cursor& at, size_t line) {
  std::optional<RowsInScript> input;
  if (at.script != nullptr && CopiesFromInput(statement)) input.emplace(*at.script, at.lines, interrupts_);
  const std::unique_ptr<RowPrinter> printer = RowPrinter::Make(options_.print, out_);
  absl::StatusOr<session::ResultSet> result = CancelledByUser(/*done=*/false);
  bool closed = false, begun = false;
  if (!interrupts_.Seen()) {
    const SessionCancel cancel(session_, interrupts_);  // an interrupt from here on ends the statement
    Rows rows(*this, *printer, input.has_value() ? &*input : nullptr);
    result = session_.Execute(statement, rows);
    if (result.ok() && rows.wrote()) result->command.clear();
    closed = rows.closed();
    begun = rows.begun();
  }
  if (input.has_value()) input->SkipRest();
  if (options_.progress != nullptr) options_.progress->Clear();
  absl::Status status = result.status();
  if (status.ok()) status = Print(*result, *printer);
  if (closed || printer->closed() || (!out_ && interrupts_.Seen()))
    return EndClosed(statement, result.ok(), at, line);
  if (!status.ok()) {
    if (options_.json_list) {
      if (begun) printer->End().IgnoreError();
      results_.AddError(status, begun);
    }
    return ReportError(statement, WithFormatHint(status, *printer), at, line);
  }
  return interrupts_.Seen() && !interactive_ ? EndInterrupted() : kExitOk;
}

int Shell::EndInterrupted() {
  if (!std::exchange(told_interrupt_, true)) {
    out_.flush();
    err_ << "nam: interrupted\n";
    err_.flush();
  }
  return kExitInterrupted;
}

/// The reader has gone, as after `| head`: ends silently. But an interrupt, too, ends the output.
int Shell::EndClosed(const std::string& statement, bool done, const Cursor& at, size_t line) {
  if (interrupts_.Seen()) {
    out_.clear();
    if (interactive_) err_ << "\n";  // a line may be half written
    return ReportError(statement, CancelledByUser(done), at, line);
  }
  quit_ = true;
  return kExitOk;
}

int Shell::ReportError(const std::string& statement, const absl::Status& status, const Cursor& at,
                       size_t line) {
  out_.flush();
  if (!at.name.empty()) err_ << at.name << ":" << line << ": ";
  if (const auto error = SqlErrorOf(status); error.has_value()) {
    err_ << sql::FormatError(statement, *error) << "\n";
  } else {
    err_ << "ERROR:  " << status.message() << "\n";
  }
  err_.flush();
  if (!absl::IsCancelled(status) || !interrupts_.Seen()) return kExitFailed;
  told_interrupt_ = true;
  return kExitInterrupted;
}

void Shell::TellWarnings(const session::ResultSet& result) {
  for (const session::ResultSet::Warning& warning : result.warnings) {
    out_.flush();
    if (warning.sqlstate == sqlstate::kSuccess) {
      err_ << "NOTICE:  " << warning.message << "\n";
    } else {
      err_ << "WARNING:  " << warning.message << " (SQLSTATE " << warning.sqlstate << ")\n";
    }
    err_.flush();
  }
}

/// Programs that read JSON need to know what a statement without rows has done, too.
void Shell::PrintCommand(const std::string& command) {
  if (command.empty()) return;
  if (options_.json_list) return results_.Add(command);
  if (options_.print.format == OutputFormat::kJson) out_ << "{" << CommandMembers(command) << "}\n";
  if (options_.print.format == OutputFormat::kTable) out_ << command << "\n";
}

absl::Status Shell::Print(const session::ResultSet& result, RowPrinter& printer) {
  TellWarnings(result);
  if (result.columns.empty()) {
    PrintCommand(result.command);
  } else {
    NAM_RETURN_IF_ERROR(printer.End());
    if (options_.json_list) results_.EndRows(result.command);
  }
  if (options_.timing) {
    // Programs that read another format get messages on the other stream.
    std::ostream& to = options_.print.format == OutputFormat::kTable ? out_ : err_;
    to << "Time: " << FormatMilliseconds(result.elapsed_ms) << " ms\n";
    to.flush();
  }
  out_.flush();
  return absl::OkStatus();
}

void Shell::PrintReport(const session::ResultSet& report) {
  if (options_.json_list) results_.BeginRows();
  out_ << Render(report, options_.print);
  if (options_.json_list) results_.EndRows("");
  out_.flush();
}

void Shell::EndScripts() {
  if (options_.json_list) results_.End();
}

}  // namespace nam::cli
