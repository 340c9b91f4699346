#include <algorithm>

#include "absl/strings/match.h"
#include "sql/bound_query.h"
#include "sql/tokens.h"

namespace nam::sql {
namespace {

constexpr int kSemicolon = ';';

/// Collects the tokens of consecutive pieces.
class Splitter {
 public:
  explicit Splitter(const std::string& script) : script_(script) {}

  void Add(int start, int end) {
    if (start_ < 0) start_ = start;
    end_ = end;
  }

  /// Drops pieces without a token.
  void Cut(bool complete) {
    if (end_ > start_) {
      pieces_.push_back(
          {script_.substr(static_cast<size_t>(start_), static_cast<size_t>(end_ - start_)), complete});
    }
    start_ = end_ = -1;
  }

  std::vector<ScriptPiece> Take() { return std::move(pieces_); }

 private:
  const std::string& script_;
  int start_ = -1;  // of the current piece; -1 before its first token
  int end_ = -1;
  std::vector<ScriptPiece> pieces_;
};

/// The end after the quote of a string with escapes, from somewhere within it.
int EndOfString(const std::string& script, int from) {
  size_t at = static_cast<size_t>(from);
  for (; at < script.size(); ++at) {
    if (script[at] == '\\') {
      ++at;
    } else if (script[at] == '\'') {
      if (at + 1 >= script.size() || script[at + 1] != '\'') break;
      ++at;  // a quote in the string
    }
  }
  return static_cast<int>(std::min(at, script.size()));
}

}  // namespace

std::vector<ScriptPiece> SplitStatements(std::string_view script_view) {
  // The scanner stops at a NUL, and so does this.
  const std::string script(script_view.substr(0, script_view.find('\0')));
  const int size = static_cast<int>(script.size());
  Splitter splitter(script);
  // Runs again only after an error inside a token, from after that piece's next semicolon.
  for (int from = 0; from < size;) {
    const std::string rest = script.substr(static_cast<size_t>(from));
    ScanResult scan = Scan(rest);
    const bool failed = !scan.error.empty();
    int error_at = size;
    int behind_error = size;
    if (failed) {
      int position = std::clamp(scan.error[0].position, 0, size - from);
      behind_error = from + position;
      ScanResult before = Scan(rest.substr(0, static_cast<size_t>(position)));
      if (!before.error.empty()) behind_error = EndOfString(script, behind_error);
      // An error within a string: the text before the string scans without one.
      while (!before.error.empty() && position > 0) {
        position = std::clamp(before.error[0].position, 0, position - 1);
        before = Scan(rest.substr(0, static_cast<size_t>(position)));
      }
      error_at = from + position;
      scan.tokens = std::move(before.tokens);
    }
    for (const Token& token : scan.tokens) {
      if (token.comment()) continue;
      if (token.kind == kSemicolon) {
        splitter.Cut(true);
      } else {
        splitter.Add(from + token.start, from + token.end);
      }
    }
    if (!failed) break;
    const bool unterminated = absl::StartsWith(scan.error[0].message, "unterminated");
    const size_t semicolon =
        unterminated ? std::string::npos : script.find(';', static_cast<size_t>(behind_error));
    if (semicolon == std::string::npos) {
      splitter.Add(error_at, size);
      break;
    }
    splitter.Add(error_at, static_cast<int>(semicolon));
    splitter.Cut(true);
    from = static_cast<int>(semicolon) + 1;
  }
  splitter.Cut(false);
  return splitter.Take();
}

}  // namespace nam::sql
