#include "terminal/table_printer.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "terminal/text_width.h"

namespace nam {
namespace {

using session::ResultSet;

std::string Cell(const Value& value, const PrintOptions& options) {
  return value.null ? options.null_text : Printable(value.ToString());
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, DisplayWidth(text)), ' ');
  return right ? blanks + text : text + blanks;
}

void TrimRight(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

std::string Footer(size_t rows) {
  return absl::StrFormat("(%d %s)\n", rows, rows == 1 ? "row" : "rows");
}

std::string RenderTable(const ResultSet& result, const PrintOptions& options) {
  const size_t columns = result.columns.size();
  std::vector<std::string> header;
  std::vector<size_t> widths;
  for (const ResultSet::Column& c : result.columns) {
    header.push_back(Printable(c.name));
    widths.push_back(DisplayWidth(header.back()));
  }
  std::vector<std::vector<std::string>> cells;
  cells.reserve(result.rows.size());
  for (const std::vector<Value>& row : result.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (size_t i = 0; i < columns; ++i) {
      line.push_back(Cell(row[i], options));
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }
  std::string out;
  const auto append = [&](const std::vector<std::string>& line) {
    std::string text;
    for (size_t i = 0; i < columns; ++i) {
      absl::StrAppend(&text, i == 0 ? " " : " | ",
                      Padded(line[i], widths[i], result.columns[i].type.numeric()));
    }
    TrimRight(text);
    absl::StrAppend(&out, text, "\n");
  };
  append(header);
  for (size_t i = 0; i < columns; ++i)
    absl::StrAppend(&out, i == 0 ? "-" : "-+-", std::string(widths[i], '-'));
  out += "-\n";
  for (const std::vector<std::string>& line : cells) append(line);
  if (options.footer) out += Footer(result.rows.size());
  return out;
}

std::string RenderExpanded(const ResultSet& result, const PrintOptions& options) {
  size_t width = 0;
  for (const ResultSet::Column& c : result.columns) width = std::max(width, DisplayWidth(Printable(c.name)));
  std::string out;
  for (size_t row = 0; row < result.rows.size(); ++row) {
    absl::StrAppend(&out, "-[ RECORD ", row + 1, " ]-\n");
    for (size_t i = 0; i < result.columns.size(); ++i) {
      std::string line = absl::StrCat(Padded(Printable(result.columns[i].name), width, false), " | ",
                                      Cell(result.rows[row][i], options));
      TrimRight(line);
      absl::StrAppend(&out, line, "\n");
    }
  }
  if (options.footer) out += Footer(result.rows.size());
  return out;
}

std::string CsvField(const std::string& text) {
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  return out + "\"";
}

std::string RenderCsv(const ResultSet& result) {
  std::string out;
  const char* separator = "";
  for (const ResultSet::Column& c : result.columns) {
    absl::StrAppend(&out, separator, CsvField(c.name));
    separator = ",";
  }
  out += "\n";
  for (const std::vector<Value>& row : result.rows) {
    separator = "";
    for (const Value& value : row) {
      absl::StrAppend(&out, separator, value.null ? "" : CsvField(value.ToString()));
      separator = ",";
    }
    out += "\n";
  }
  return out;
}

std::vector<std::string> DistinctNames(const ResultSet& result) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const ResultSet::Column& c : result.columns) {
    std::string name = c.name;
    for (int n = 2; !seen.insert(name).second; ++n) name = absl::StrCat(c.name, "_", n);
    names.push_back(name);
  }
  return names;
}

std::string RenderJson(const ResultSet& result) {
  std::vector<std::string> keys = DistinctNames(result);
  for (std::string& key : keys) key = JsonString(key);
  std::string out = "[";
  for (size_t row = 0; row < result.rows.size(); ++row) {
    absl::StrAppend(&out, row == 0 ? "\n  {" : ",\n  {");
    for (size_t i = 0; i < keys.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ", keys[i], ": ", JsonValue(result.rows[row][i]));
    }
    out += "}";
  }
  out += result.rows.empty() ? "]\n" : "\n]\n";
  return out;
}

std::string MarkdownCell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string RenderMarkdown(const ResultSet& result, const PrintOptions& options) {
  std::string out = "|", rule = "|";
  for (const ResultSet::Column& c : result.columns) {
    absl::StrAppend(&out, " ", MarkdownCell(Printable(c.name)), " |");
    rule += c.type.numeric() ? " ---: |" : " --- |";
  }
  absl::StrAppend(&out, "\n", rule, "\n");
  for (const std::vector<Value>& row : result.rows) {
    out += "|";
    for (const Value& value : row) absl::StrAppend(&out, " ", MarkdownCell(Cell(value, options)), " |");
    out += "\n";
  }
  return out;
}

}  // namespace

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
  switch (options.format) {
    case OutputFormat::kTable:
      return options.expanded ? RenderExpanded(result, options) : RenderTable(result, options);
    case OutputFormat::kCsv:
      return RenderCsv(result);
    case OutputFormat::kJson:
      return RenderJson(result);
    case OutputFormat::kMarkdown:
      return RenderMarkdown(result, options);
  }
  return {};
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
  return value.type.numeric() ? value.ToString() : JsonString(value.ToString());
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
