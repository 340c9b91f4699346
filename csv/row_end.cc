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

/// Whether a quote opens a field: before it are blanks at most. No quote is open there.
bool BeginsField(std::string_view text, size_t quote, char delimiter) {
  while (quote > 0) {
    const char before = text[--quote];
    if (before == delimiter || before == '\n') return true;
    if (before != ' ' && before != '\t') return false;
  }
  return true;
}

/// Goes from quote to quote, since only those that begin fields count.
size_t EndOfQuotedFields(std::string_view text, const Dialect& dialect) {
  size_t end = 0, at = 0;
  while (true) {
    const size_t quote = std::min(text.find(dialect.quote, at), text.size());
    const size_t line_end = text.substr(at, quote - at).rfind('\n');
    if (line_end != std::string_view::npos) end = at + line_end + 1;
    if (quote == text.size()) return end;
    at = quote + 1;
    // `end` is where the row begins. A comment has no quotes.
    if (dialect.comment != Dialect::kNoComment && text[end] == dialect.comment) {
      at = std::min(text.find('\n', quote), text.size());
      continue;
    }
    if (!BeginsField(text, quote, dialect.delimiter)) continue;
    const size_t close = ClosingQuote(text, at, dialect);
    if (close == std::string_view::npos) return end;
    at = close + 1;
  }
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

size_t ClosingQuote(std::string_view text, size_t at, const Dialect& dialect) {
  while (at < text.size()) {
    if (text[at] == dialect.escape && at + 1 < text.size() &&
        (text[at + 1] == dialect.quote || text[at + 1] == dialect.escape)) {
      at += 2;
    } else if (text[at] == dialect.quote) {
      return at;
    } else {
      ++at;
    }
  }
  return std::string_view::npos;
}

size_t EndOfLastRow(std::string_view text, const Dialect& dialect) {
  if (dialect.format == Dialect::Format::kText) return EndOfBackslashes(text);
  if (!dialect.has_quotes()) return text.rfind('\n') + 1;
  if (dialect.quotes_begin_fields) return EndOfQuotedFields(text, dialect);
  if (dialect.escape == dialect.quote) return EndOfDoubledQuotes(text, dialect.quote);
  return EndOfEscapedQuotes(text, dialect);
}

}  // namespace nam::csv
