#include "terminal/table_printer.h"

#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "terminal/row_printer.h"
#include "terminal/text_width.h"

namespace nam {

using session::ResultSet;

absl::StatusOr<OutputFormat> ParseOutputFormat(std::string_view name) {
  if (name == "table") return OutputFormat::kTable;
  if (name == "csv") return OutputFormat::kCsv;
  if (name == "json") return OutputFormat::kJson;
  if (name == "markdown") return OutputFormat::kMarkdown;
  return absl::InvalidArgumentError(
      absl::StrFormat("\"%s\" is not an output format: table, csv, json or markdown", name));
}

std::string Render(const ResultSet& result, const PrintOptions& options) {
  if (result.columns.empty()) return {};
  std::ostringstream out;
  const std::unique_ptr<RowPrinter> printer = RowPrinter::Make(options, out);
  absl::Status printed = printer->Begin(result.columns);
  if (!result.rows.empty()) printed.Update(printer->Add(session::ResultBatch(result.rows)));
  printed.Update(printer->End());
  NAM_CHECK(printed.ok(), "a string takes all that is written to it");
  return std::move(out).str();
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const uint32_t c = NextCodePoint(text);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c < 0x20) {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : absl::StrFormat("\\u%04x", c);
    } else {
      AppendUtf8(c, out);
    }
  }
  return out + "\"";
}

std::string JsonValue(const Value& value) {
  if (value.null || value.type.kind == TypeKind::kNull) return "null";
  if (value.type.kind == TypeKind::kBool) return value.number != 0 ? "true" : "false";
  const bool number = value.type.exact() || value.type.real();
  return number ? JsonNumber(value.ToString(), value.type.exact()) : JsonString(value.ToString());
}

namespace {

bool IsAsciiDigit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether double precision keeps the digits of an exact number.
bool FitsDouble(std::string_view text) {
  constexpr size_t kDigits = 15;
  constexpr std::string_view kGreatest = "9007199254740992";  // 2^53
  const bool whole = text.find('.') == std::string_view::npos;
  std::string digits;
  for (const char c : text) {
    if (IsAsciiDigit(c) && !(c == '0' && digits.empty())) digits.push_back(c);
  }
  return digits.size() <= kDigits || (whole && digits.size() == kGreatest.size() && digits <= kGreatest);
}

}  // namespace

std::string JsonNumber(std::string_view text, bool exact) {
  const std::string_view unsigned_text = text.substr(text.starts_with('-') ? 1 : 0);
  const bool finite = !unsigned_text.empty() && IsAsciiDigit(unsigned_text[0]);
  return finite && (!exact || FitsDouble(text)) ? std::string(text) : JsonString(text);
}

std::string JsonRows(const ResultSet& result) {
  std::string out = "[";
  for (size_t row = 0; row < result.rows.size(); ++row) {
    out += row == 0 ? "[" : ", [";
    for (size_t i = 0; i < result.rows[row].size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ", JsonValue(result.rows[row][i]));
    }
    out += "]";
  }
  return out + "]";
}

}  // namespace nam
