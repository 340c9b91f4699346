#include "sql/error_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace nam::sql {

std::string FormatError(const std::string& statement, const SqlError& error) {
  std::string out = absl::StrCat("ERROR:  ", error.message, " (SQLSTATE ", error.sqlstate, ")");
  if (error.position >= 0 && static_cast<size_t>(error.position) <= statement.size()) {
    const auto position = statement.begin() + error.position;
    const auto after_newline = std::find(std::make_reverse_iterator(position), statement.rend(), '\n').base();
    const auto newline = std::find(position, statement.end(), '\n');
    std::string line(after_newline, newline);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string label =
        absl::StrCat("LINE ", 1 + std::count(statement.begin(), after_newline, '\n'), ": ");
    std::string indent(label.size(), ' ');
    for (auto it = after_newline; it != position; ++it) {
      const bool continuation = (static_cast<unsigned char>(*it) & 0xc0) == 0x80;
      if (!continuation) indent.push_back(*it == '\t' ? '\t' : ' ');
    }
    absl::StrAppend(&out, "\n", label, line, "\n", indent, "^");
  }
  if (!error.hint.empty()) absl::StrAppend(&out, "\nHINT:  ", error.hint);
  return out;
}

}  // namespace nam::sql
