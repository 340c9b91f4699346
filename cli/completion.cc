#include "cli/completion.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace nam::cli {
namespace {

constexpr const char* kKeywords[] = {
    "all",     "analyze", "and",    "as",    "asc",      "avg",   "between", "by",  "case",
    "cast",    "count",   "date",   "desc",  "distinct", "drop",  "else",    "end", "exists",
    "explain", "extract", "false",  "first", "from",     "group", "having",  "if",  "in",
    "inner",   "is",      "join",   "last",  "like",     "limit", "max",     "min", "not",
    "null",    "nulls",   "offset", "on",    "or",       "order", "select",  "set", "substring",
    "sum",     "table",   "then",   "true",  "when",     "where"};
constexpr const char* kMetaCommands[] = {"\\?", "\\d", "\\dt", "\\i", "\\q", "\\servers", "\\timing", "\\x"};

bool InWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\\' || c == '?' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

char Lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}
char Upper(char c) {
  return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
}

bool StartsWithIgnoringCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), text.begin(),
                                                    [](char a, char b) { return Lower(a) == Lower(b); });
}

}  // namespace

size_t Completer::WordStart(std::string_view line) {
  size_t start = line.size();
  while (start > 0 && InWord(line[start - 1])) --start;
  return start;
}

std::string Completer::CommonPrefix(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::string prefix = words[0];
  for (const std::string& word : words) {
    size_t same = 0;
    while (same < std::min(prefix.size(), word.size()) && prefix[same] == word[same]) ++same;
    prefix.resize(same);
  }
  return prefix;
}

std::vector<std::string> Completer::Complete(std::string_view line) {
  const std::string_view word = line.substr(WordStart(line));
  std::set<std::string> found;
  if (word.starts_with('\\')) {
    for (const char* command : kMetaCommands) {
      if (std::string_view(command).starts_with(word)) found.insert(command);
    }
  } else if (!word.empty() || !line.empty()) {
    const bool upper = !word.empty() &&
                       std::none_of(word.begin(), word.end(), [](char c) { return c != Upper(c); }) &&
                       std::isalpha(static_cast<unsigned char>(word[0])) != 0;
    for (std::string keyword : kKeywords) {
      if (word.empty() || !StartsWithIgnoringCase(keyword, word)) continue;
      if (upper) std::transform(keyword.begin(), keyword.end(), keyword.begin(), Upper);
      found.insert(keyword);
    }
    LearnNames();
    for (const std::string& name : names_) {
      if (StartsWithIgnoringCase(name, word)) found.insert(name);
    }
  }
  return {found.begin(), found.end()};
}

void Completer::LearnNames() {
  if (names_known_) return;
  names_known_ = true;
  names_.clear();
  const auto tables = catalog_.ListTables();
  if (!tables.ok()) return;  // Tab reports no errors
  for (const proto::Table& table : *tables) {
    names_.push_back(table.name());
    for (const proto::Column& column : table.columns()) {
      if (!column.hidden()) names_.push_back(column.name());
    }
  }
}

}  // namespace nam::cli
