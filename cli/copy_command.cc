#include "cli/copy_command.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "sql/tokens.h"

namespace nam::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// The end of the token that begins at `at`: a quoted text, a parenthesized part, or a word.
size_t EndOfToken(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\'' || c == '"') {
      at = std::min(text.find(c, at + 1), text.size());
      if (at == text.size()) break;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (depth <= 0 && kBlanks.find(c) != std::string_view::npos) {
      break;
    }
  }
  return at;
}

std::string TargetOf(std::string_view target) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(target.data(), target.size()));
  if (lower == "pstdin" || lower == "stdin") return "STDIN";
  if (lower == "pstdout" || lower == "stdout") return "STDOUT";
  if (lower == "program" || target.starts_with('\'')) return std::string(target);
  return absl::StrCat(
      "'", absl::StrReplaceAll(absl::string_view(target.data(), target.size()), {{"'", "''"}}), "'");
}

bool Spells(std::string_view word, std::string_view lower) {
  return absl::EqualsIgnoreCase({word.data(), word.size()}, {lower.data(), lower.size()});
}

}  // namespace

bool TakesProcessInput(std::string_view arguments) {
  bool from = false;
  for (size_t at = 0; at < arguments.size();) {
    at = std::min(arguments.find_first_not_of(kBlanks, at), arguments.size());
    const size_t end = EndOfToken(arguments, at);
    const std::string_view token = arguments.substr(at, end - at);
    if (from) return Spells(token, "pstdin");
    from = Spells(token, "from");
    at = end;
  }
  return false;
}

bool CopiesFromInput(const std::string& statement) {
  const sql::ScanResult scan = sql::Scan(statement);
  std::string_view first, before;
  int depth = 0;
  for (const sql::Token& token : scan.tokens) {
    if (token.comment()) continue;
    const auto start = static_cast<size_t>(token.start);
    const std::string_view word =
        std::string_view(statement).substr(start, static_cast<size_t>(token.end) - start);
    if (first.empty()) first = word;
    if (!Spells(first, "copy")) return false;
    if (word == "(") ++depth;
    if (word == ")") --depth;
    if (depth == 0 && Spells(before, "from")) return Spells(word, "stdin");
    before = word;
  }
  return false;
}

std::string CopyStatementOf(std::string_view arguments) {
  std::string statement = "COPY";
  bool target_next = false, target_seen = false;
  for (size_t at = 0; at < arguments.size();) {
    at = std::min(arguments.find_first_not_of(kBlanks, at), arguments.size());
    if (at == arguments.size()) break;
    const bool bare = target_next && arguments[at] != '\'';
    const size_t end =
        bare ? std::min(arguments.find_first_of(kBlanks, at), arguments.size()) : EndOfToken(arguments, at);
    const std::string_view token = arguments.substr(at, end - at);
    absl::StrAppend(&statement, " ", target_next ? TargetOf(token) : std::string(token));
    const absl::string_view word(token.data(), token.size());
    target_next =
        !target_seen && (absl::EqualsIgnoreCase(word, "from") || absl::EqualsIgnoreCase(word, "to"));
    target_seen |= target_next;
    at = end;
  }
  return statement;
}

}  // namespace nam::cli
