#include "sql/error_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace nam::sql {

namespace {

constexpr size_t kMostNearBytes = 60;  // of a line, on either side of the position
constexpr char kDots[] = "...";

bool Continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// The shown part of a line, and the position in it.
struct Near {
  std::string text;
  size_t position;
};

Near NearPosition(const std::string& line, size_t position) {
  size_t from = position > kMostNearBytes + sizeof(kDots) ? position - kMostNearBytes : 0;
  size_t to =
      line.size() - position > kMostNearBytes + sizeof(kDots) ? position + kMostNearBytes : line.size();
  while (from > 0 && from < line.size() && Continues(line[from])) --from;
  while (to < line.size() && Continues(line[to])) ++to;
  const std::string before = from > 0 ? kDots : "", behind = to < line.size() ? kDots : "";
  return {absl::StrCat(before, line.substr(from, to - from), behind), before.size() + position - from};
}

}  // namespace

std::string FormatError(const std::string& statement, const SqlError& error) {
  std::string out = absl::StrCat("ERROR:  ", error.message, " (SQLSTATE ", error.sqlstate, ")");
  if (error.position >= 0 && static_cast<size_t>(error.position) <= statement.size()) {
    const auto position = statement.begin() + error.position;
    const auto after_newline = std::find(std::make_reverse_iterator(position), statement.rend(), '\n').base();
    const auto newline = std::find(position, statement.end(), '\n');
    std::string line(after_newline, newline);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const auto of_line = static_cast<size_t>(position - after_newline);
    const Near near = NearPosition(line, std::min(of_line, line.size()));
    const std::string label =
        absl::StrCat("LINE ", 1 + std::count(statement.begin(), after_newline, '\n'), ": ");
    std::string indent(label.size(), ' ');
    for (size_t i = 0; i < near.position; ++i) {
      if (!Continues(near.text[i])) indent.push_back(near.text[i] == '\t' ? '\t' : ' ');
    }
    absl::StrAppend(&out, "\n", label, near.text, "\n", indent, "^");
  }
  if (!error.hint.empty()) absl::StrAppend(&out, "\nHINT:  ", error.hint);
  return out;
}

}  // namespace nam::sql
