#include "csv/row_end.h"

#include <algorithm>

namespace nam::csv {
namespace {

/// A quote within quotes is written as two, so the number of quotes tells whether one is open: counts those
/// of the whole text, and goes back from its end.
size_t EndOfDoubledQuotes(std::string_view text, char quote) {
  bool open = std::count(text.begin(), text.end(), quote) % 2 != 0;
  for (size_t at = text.size(); at > 0; --at) {
    const char c = text[at - 1];
    if (c == quote) open = !open;
    if (c == '\n' && !open) return at;
  }
  return 0;
}

size_t EndOfEscapedQuotes(std::string_view text, const Dialect& dialect) {
  size_t end = 0;
  bool open = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (open && c == dialect.escape) {
      ++at;
    } else if (c == dialect.quote) {
      open = !open;
    } else if (c == '\n' && !open) {
      end = at + 1;
    }
  }
  return end;
}

size_t EndOfBackslashes(std::string_view text) {
  for (size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] != '\n') continue;
    size_t backslashes = 0;
    while (backslashes + 1 < at && text[at - 2 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return at;
  }
  return 0;
}

}  // namespace

size_t EndOfLastRow(std::string_view text, const Dialect& dialect) {
  if (dialect.format == Dialect::Format::kText) return EndOfBackslashes(text);
  if (!dialect.has_quotes()) return text.rfind('\n') + 1;
  if (dialect.escape == dialect.quote) return EndOfDoubledQuotes(text, dialect.quote);
  return EndOfEscapedQuotes(text, dialect);
}

}  // namespace nam::csv
