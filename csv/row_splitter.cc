#include "csv/row_splitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "csv/row_end.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

absl::Status UnquotedReturn() {
  return UserError(sqlstate::kBadCopyFormat, "unquoted carriage return found in data", -1,
                   "lines end in LF or CRLF; other carriage returns stand in quotes");
}

absl::Status UnterminatedField() {
  return UserError(sqlstate::kBadCopyFormat, "unterminated CSV quoted field", -1, "a quote is never closed");
}

bool IsBlankBeforeQuote(char c) {
  return c == ' ' || c == '\t';
}

/// The text of a quoted field.
std::string WithoutEscapes(std::string_view inside, const Dialect& dialect) {
  std::string text;
  for (size_t at = 0; at < inside.size(); ++at) {
    const bool escapes = inside[at] == dialect.escape && at + 1 < inside.size() &&
                         (inside[at + 1] == dialect.quote || inside[at + 1] == dialect.escape);
    if (escapes) ++at;
    text += inside[at];
  }
  return text;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The byte written as a number after a backslash, of up to `digits_max` digits of the base.
char NumberedByte(std::string_view text, size_t& at, int base, int digits_max) {
  int value = 0;
  for (int digits = 0; digits < digits_max && at < text.size(); ++digits, ++at) {
    const int digit = HexDigit(text[at]);
    if (digit < 0 || digit >= base) break;
    value = value * base + digit;
  }
  return static_cast<char>(value & 0xff);
}

}  // namespace

void RowSplitter::Begin(std::string_view portion, bool last) {
  portion_ = portion;
  last_ = last;
  has_returns_ = portion.find('\r') != std::string_view::npos;
  at_ = 0;
  lines_ = 0;
  kept_.clear();
}

absl::StatusOr<bool> RowSplitter::Next(std::vector<Field>& fields) {
  fields.clear();
  while (AtComment()) {
    at_ = std::min(portion_.find('\n', at_), portion_.size() - 1) + 1;
    ++lines_;
  }
  if (at_ == portion_.size()) return false;
  const size_t begin = at_;
  lines_before_ = lines_;
  if (const size_t marker = MarkerBytes(); marker > 0) {
    at_ += marker;
    row_ = portion_.substr(begin, marker);
    if (at_ == portion_.size() && last_) return false;
    return UserError(sqlstate::kBadCopyFormat, "rows stand behind the end-of-copy marker \\.", -1,
                     "remove the marker");
  }
  const absl::Status split = dialect_.format == Dialect::Format::kCsv ? NextCsv(fields) : NextText(fields);
  row_ = portion_.substr(begin, at_ - begin);
  NAM_RETURN_IF_ERROR(split);
  lines_ += static_cast<uint64_t>(std::count(row_.begin(), row_.end(), '\n'));
  return true;
}

size_t RowSplitter::MarkerBytes() const {
  const bool text = dialect_.format == Dialect::Format::kText;
  const std::string_view rest = portion_.substr(at_);
  if (!rest.starts_with(kEndMarker) || (!text && !dialect_.has_quotes())) return 0;
  const std::string_view behind = rest.substr(kEndMarker.size());
  const size_t end = behind.find_first_not_of('\r');
  if (end <= 1 && end < behind.size() && behind[end] == '\n') return kEndMarker.size() + end + 1;
  // Without a line end it is a text of CSV.
  return text && behind.size() <= 1 && end == std::string_view::npos ? rest.size() : 0;
}

std::string_view RowSplitter::Keep(std::string text) {
  return kept_.emplace_back(std::move(text));
}

absl::Status RowSplitter::NextCsv(std::vector<Field>& fields) {
  const char delimiter = dialect_.delimiter;
  constexpr int kNone = 256;  // not a byte
  const int quote = dialect_.has_quotes() ? dialect_.quote : kNone;
  const bool anywhere = !dialect_.quotes_begin_fields;
  while (true) {
    const size_t begin = at_;
    if (!anywhere) {
      while (at_ < portion_.size() && portion_[at_] != delimiter && IsBlankBeforeQuote(portion_[at_])) ++at_;
    }
    const bool begun = !anywhere && at_ < portion_.size() && portion_[at_] == quote;
    while (!begun && at_ < portion_.size() && portion_[at_] != delimiter && portion_[at_] != '\n' &&
           (!anywhere || portion_[at_] != quote))
      ++at_;
    if (begun) {
      NAM_RETURN_IF_ERROR(FieldBegunByQuote(begin, fields));
    } else if (anywhere && at_ < portion_.size() && portion_[at_] == quote) {
      NAM_RETURN_IF_ERROR(QuotedField(begin, fields));
    } else {
      std::string_view text = portion_.substr(begin, at_ - begin);
      if (has_returns_) {
        if (at_ == portion_.size() || portion_[at_] == '\n') text = WithoutReturn(text);
        if (text.find('\r') != std::string_view::npos) return UnquotedReturn();
      }
      fields.push_back({text, text == dialect_.null_text});
    }
    if (at_ == portion_.size()) return absl::OkStatus();
    if (portion_[at_++] == '\n') return absl::OkStatus();
  }
}

absl::Status RowSplitter::QuotedField(size_t begin, std::vector<Field>& fields) {
  std::string text(portion_.substr(begin, at_ - begin));
  if (has_returns_ && text.find('\r') != std::string::npos) return UnquotedReturn();
  const bool at_once = at_ == begin;
  bool open = false;
  size_t runs = 0;  // appended parts; a field of one is a view
  std::string_view whole;
  while (at_ < portion_.size()) {
    const char c = portion_[at_];
    if (!open && (c == dialect_.delimiter || c == '\n')) break;
    if (!open && c != dialect_.quote) {
      if (c == '\r') {
        if (++at_ < portion_.size() && portion_[at_] != '\n') return UnquotedReturn();
        continue;
      }
      text += c;
      ++at_;
      runs = 2;
      continue;
    }
    ++at_;
    if (!open) {
      open = true;
    } else {
      // Within quotes, at a quote or an escape.
      const bool escapes = c == dialect_.escape && at_ < portion_.size() &&
                           (portion_[at_] == dialect_.quote || portion_[at_] == dialect_.escape);
      if (escapes) {
        text += portion_[at_++];
        runs = 2;
      } else if (c == dialect_.quote) {
        open = false;
        continue;
      } else {
        text += c;
        runs = 2;
      }
    }
    const size_t from = at_;
    while (at_ < portion_.size() && portion_[at_] != dialect_.quote && portion_[at_] != dialect_.escape)
      ++at_;
    whole = portion_.substr(from, at_ - from);
    text += whole;
    ++runs;
  }
  if (open) return UnterminatedField();
  fields.push_back({at_once && runs == 1 ? whole : Keep(std::move(text)), false});
  return absl::OkStatus();
}

bool RowSplitter::AtFieldEnd() const {
  const std::string_view rest = portion_.substr(at_);
  return rest.empty() || rest[0] == dialect_.delimiter || rest[0] == '\n' || rest == "\r" ||
         rest.starts_with("\r\n");
}

absl::Status RowSplitter::FieldBegunByQuote(size_t begin, std::vector<Field>& fields) {
  const size_t open = at_;
  const size_t close = ClosingQuote(portion_, open + 1, dialect_);
  if (close == std::string_view::npos) {
    at_ = portion_.size();
    return UnterminatedField();
  }
  const std::string_view inside = portion_.substr(open + 1, close - open - 1);
  const bool plain = inside.find(dialect_.quote) == std::string_view::npos &&
                     inside.find(dialect_.escape) == std::string_view::npos;
  at_ = close + 1;
  while (!AtFieldEnd() && IsBlankBeforeQuote(portion_[at_])) ++at_;
  if (AtFieldEnd()) {
    fields.push_back({plain ? inside : Keep(WithoutEscapes(inside, dialect_)), false});
    if (portion_.substr(at_).starts_with('\r')) ++at_;
    return absl::OkStatus();
  }
  // `"Weird Al" Yankovic`: the quotes are text, if it is the same text with them as without.
  if (!plain || inside.find(dialect_.delimiter) != std::string_view::npos ||
      inside.find_first_of("\r\n") != std::string_view::npos) {
    return UserError(sqlstate::kBadCopyFormat, "text stands behind a field's closing quote", -1,
                     "a quote within quotes is written twice; or say quote => '' if quotes are text");
  }
  while (!AtFieldEnd() && portion_[at_] != '\r') ++at_;
  if (!AtFieldEnd()) return UnquotedReturn();
  fields.push_back({portion_.substr(begin, at_ - begin), false});
  if (portion_.substr(at_).starts_with('\r')) ++at_;
  return absl::OkStatus();
}

absl::Status RowSplitter::NextText(std::vector<Field>& fields) {
  size_t end = at_, escaped = at_;  // behind the last byte that has a backslash before it
  while (end < portion_.size() && portion_[end] != '\n') {
    if (portion_[end] == '\\') escaped = end + 2;
    end += portion_[end] == '\\' ? 2 : 1;
  }
  end = std::min(end, portion_.size());
  std::string_view line = portion_.substr(at_, end - at_);
  if (escaped != end) line = WithoutReturn(line);
  at_ = std::min(end + 1, portion_.size());
  for (size_t from = 0; from <= line.size();) {
    size_t to = from;
    bool plain = true;
    while (to < line.size() && line[to] != dialect_.delimiter) {
      if (line[to] == '\r') {
        return UserError(sqlstate::kBadCopyFormat, "literal carriage return found in data", -1,
                         "lines end in LF or CRLF; other carriage returns are written \\r");
      }
      if (line.substr(to, 2) == kEndMarker) {
        return UserError(sqlstate::kBadCopyFormat, "end-of-copy marker is not alone on its line", -1,
                         "a backslash is written twice");
      }
      plain = plain && line[to] != '\\';
      to += line[to] == '\\' ? 2 : 1;
    }
    to = std::min(to, line.size());
    const std::string_view field = line.substr(from, to - from);
    fields.push_back({plain ? field : Unescaped(field), field == dialect_.null_text});
    from = to + 1;
  }
  return absl::OkStatus();
}

std::string_view RowSplitter::Unescaped(std::string_view field) {
  constexpr std::string_view kLetters = "bfnrtv", kBytes = "\b\f\n\r\t\v";
  std::string out;
  for (size_t at = 0; at < field.size();) {
    if (field[at] != '\\') {
      out += field[at++];
      continue;
    }
    if (++at == field.size()) break;  // at the end of the file
    const char c = field[at];
    if (c >= '0' && c <= '7') {
      out += NumberedByte(field, at, 8, 3);
    } else if (c == 'x' && at + 1 < field.size() && HexDigit(field[at + 1]) >= 0) {
      ++at;
      out += NumberedByte(field, at, 16, 2);
    } else {
      const size_t letter = kLetters.find(c);
      out += letter == std::string_view::npos ? c : kBytes[letter];
      ++at;
    }
  }
  return Keep(std::move(out));
}

}  // namespace nam::csv
