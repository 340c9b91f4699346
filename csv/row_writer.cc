#include "csv/row_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr std::string_view kControls = "\b\f\n\r\t\v", kControlLetters = "bfnrtv";

}  // namespace

RowWriter::RowWriter(const Dialect& dialect, size_t columns, std::vector<bool> force_quote)
    : dialect_(dialect), columns_(columns), force_quote_(std::move(force_quote)) {
  const auto mark = [this](char c) { special_[static_cast<unsigned char>(c)] = true; };
  mark(dialect.delimiter);
  if (dialect.format == Dialect::Format::kText) {
    mark('\\');
    for (const char c : kControls) mark(c);
    return;
  }
  if (dialect.has_quotes()) mark(dialect.quote);
  mark('\n');
  mark('\r');
}

void RowWriter::Begin(std::string& out) {
  if (column_++ > 0) out += dialect_.delimiter;
}

void RowWriter::AddNull(std::string& out) {
  Begin(out);
  out += dialect_.null_text;
}

absl::Status RowWriter::Add(std::string_view text, std::string& out) {
  const size_t column = column_;
  Begin(out);
  if (dialect_.format == Dialect::Format::kText) {
    AddText(text, out);
    return absl::OkStatus();
  }
  if (!dialect_.has_quotes()) return AddUnquoted(text, out);
  AddCsv(text, NeedsQuotes(text) || (column < force_quote_.size() && force_quote_[column]), out);
  return absl::OkStatus();
}

absl::Status RowWriter::AddHeader(const std::vector<std::string>& names, std::string& out) {
  for (const std::string& name : names) {
    Begin(out);
    if (dialect_.format == Dialect::Format::kText) {
      AddText(name, out);
    } else if (!dialect_.has_quotes()) {
      NAM_RETURN_IF_ERROR(AddUnquoted(name, out));
    } else {
      AddCsv(name, NeedsQuotes(name), out);
    }
  }
  EndRow(out);
  return absl::OkStatus();
}

void RowWriter::EndRow(std::string& out) {
  out += '\n';
  column_ = 0;
}

bool RowWriter::NeedsQuotes(std::string_view text) const {
  const bool marker = columns_ == 1 && text == kEndMarker && dialect_.has_quotes();
  if (text == dialect_.null_text || marker) return true;
  return std::any_of(text.begin(), text.end(),
                     [this](char c) { return special_[static_cast<unsigned char>(c)]; });
}

absl::Status RowWriter::AddUnquoted(std::string_view text, std::string& out) {
  if (NeedsQuotes(text)) {
    return UserError(sqlstate::kBadCopyFormat,
                     text == dialect_.null_text
                         ? "a text that is not NULL would be read as NULL from a file without quotes"
                         : "a text has a delimiter or a line end, and the file has no quotes",
                     -1, "write FORMAT csv");
  }
  out += text;
  return absl::OkStatus();
}

void RowWriter::AddCsv(std::string_view text, bool quotes, std::string& out) {
  if (!quotes) {
    out += text;
    return;
  }
  out += dialect_.quote;
  for (const char c : text) {
    if (c == dialect_.quote || c == dialect_.escape) out += dialect_.escape;
    out += c;
  }
  out += dialect_.quote;
}

void RowWriter::AddText(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    size_t plain = at;
    while (plain < text.size() && !special_[static_cast<unsigned char>(text[plain])]) ++plain;
    out += text.substr(at, plain - at);
    at = plain;
    if (at == text.size()) return;
    const size_t control = kControls.find(text[at]);
    out += '\\';
    out += control == std::string_view::npos ? text[at] : kControlLetters[control];
    ++at;
  }
}

}  // namespace nam::csv
