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
  return value.type.exact() ? value.ToString() : JsonString(value.ToString());
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
