#include "terminal/row_printer.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "terminal/text_width.h"

namespace nam {
namespace {

using session::ResultBatch;
using session::ResultSet;
using Columns = std::vector<ResultSet::Column>;

/// Buffered text is written from this size on.
constexpr size_t kWriteBytes = 64 << 10;

std::string Cell(const ResultBatch& rows, size_t column, size_t row, const PrintOptions& options) {
  if (rows.null(column, row)) return options.null_text;
  std::string text;
  rows.AppendText(column, row, text);
  return rows.is_text(column, row) ? Printable(text) : text;
}

void AppendPadded(std::string_view text, size_t width, bool right, std::string& out) {
  const size_t blanks = width - std::min(width, DisplayWidth(text));
  if (right) out.append(blanks, ' ');
  out += text;
  if (!right) out.append(blanks, ' ');
}

/// Trims the last line, which begins at `begin`.
void TrimRight(size_t begin, std::string& out) {
  while (out.size() > begin && out.back() == ' ') out.pop_back();
}

std::string Footer(uint64_t rows) {
  return absl::StrFormat("(%d %s)\n", rows, rows == 1 ? "row" : "rows");
}

/// A cell with one line per line of its text.
std::string CellLines(const ResultBatch& rows, size_t column, size_t row, const PrintOptions& options) {
  if (rows.null(column, row) || !rows.is_text(column, row)) return Cell(rows, column, row, options);
  std::string lines;
  std::string_view left = rows.text(column, row);
  while (true) {
    const size_t end = left.find('\n');
    lines += Printable(left.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines.push_back('\n');
    left.remove_prefix(end + 1);
  }
}

size_t WidestLine(std::string_view lines) {
  size_t widest = 0;
  while (true) {
    const size_t end = lines.find('\n');
    widest = std::max(widest, DisplayWidth(lines.substr(0, end)));
    if (end == std::string_view::npos) return widest;
    lines.remove_prefix(end + 1);
  }
}

/// Cells are concatenated in one text. In a multi-line cell every line but the last is followed by `+`, as in
/// psql.
class TablePrinter final : public RowPrinter {
 public:
  TablePrinter(const PrintOptions& options, std::ostream& out) : RowPrinter(out), options_(options) {}

  absl::Status Begin(const Columns& columns) override {
    columns_ = columns;
    for (ResultSet::Column& column : columns_) {
      column.name = Printable(column.name);
      widths_.push_back(DisplayWidth(column.name));
    }
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& rows) override {
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        const std::string cell = CellLines(rows, i, row, options_);
        widths_[i] = std::max(widths_[i], WidestLine(cell));
        cells_ += cell;
        ends_.push_back(cells_.size());
      }
    }
    rows_ += rows.rows();
    return absl::OkStatus();
  }
  uint64_t bytes_held() const override {
    return ends_.empty() ? 0 : cells_.capacity() + ends_.capacity() * sizeof(size_t);
  }
  bool prints_at_once() const override { return false; }

  absl::Status End() override {
    std::string out;
    std::vector<std::string_view> line;
    for (const ResultSet::Column& column : columns_) line.push_back(column.name);
    Append(line, out);
    for (size_t i = 0; i < columns_.size(); ++i)
      absl::StrAppend(&out, i == 0 ? "-" : "-+-", std::string(widths_[i], '-'));
    out += "-\n";
    size_t begin = 0;
    for (size_t cell = 0; cell < ends_.size(); cell += columns_.size()) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        const size_t end = ends_[cell + i];
        line[i] = std::string_view(cells_).substr(begin, end - begin);
        begin = end;
      }
      Append(line, out);
      if (out.size() >= kWriteBytes) NAM_RETURN_IF_ERROR(Write(out));
    }
    if (options_.footer) out += Footer(rows_);
    return Write(out);
  }

 private:
  /// Prints as many lines as the tallest cell has, and removes what it prints from the cells.
  void Append(std::vector<std::string_view>& cells, std::string& out) const {
    for (bool more = true; more;) {
      more = false;
      const size_t begin = out.size();
      for (size_t i = 0; i < columns_.size(); ++i) {
        out += i == 0 ? " " : "| ";
        const size_t end = cells[i].find('\n');
        AppendPadded(cells[i].substr(0, end), widths_[i], columns_[i].type.exact(), out);
        out.push_back(end == std::string_view::npos ? ' ' : '+');
        more = more || end != std::string_view::npos;
        cells[i].remove_prefix(end == std::string_view::npos ? cells[i].size() : end + 1);
      }
      TrimRight(begin, out);
      out.push_back('\n');
    }
  }

  const PrintOptions options_;
  Columns columns_;
  std::vector<size_t> widths_;
  std::string cells_;
  std::vector<size_t> ends_;  // of each cell in cells_
  uint64_t rows_ = 0;
};

class ExpandedPrinter final : public RowPrinter {
 public:
  ExpandedPrinter(const PrintOptions& options, std::ostream& out) : RowPrinter(out), options_(options) {}

  absl::Status Begin(const Columns& columns) override {
    size_t width = 0;
    for (const ResultSet::Column& column : columns)
      width = std::max(width, DisplayWidth(Printable(column.name)));
    for (const ResultSet::Column& column : columns) {
      AppendPadded(Printable(column.name), width, false, names_.emplace_back());
      names_.back() += " | ";
    }
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& rows) override {
    for (size_t row = 0; row < rows.rows(); ++row) {
      absl::StrAppend(&out_, "-[ RECORD ", ++rows_, " ]-\n");
      for (size_t i = 0; i < names_.size(); ++i) {
        const size_t begin = out_.size();
        out_ += names_[i];
        out_ += Cell(rows, i, row, options_);
        TrimRight(begin, out_);
        out_.push_back('\n');
      }
    }
    return Write(out_);
  }
  absl::Status End() override {
    if (options_.footer) out_ += Footer(rows_);
    return Write(out_);
  }

 private:
  const PrintOptions options_;
  std::vector<std::string> names_;
  std::string out_;
  uint64_t rows_ = 0;
};

void AppendCsvField(std::string_view text, std::string& out) {
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out.push_back('"');
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  out.push_back('"');
}

class CsvPrinter final : public RowPrinter {
 public:
  explicit CsvPrinter(std::ostream& out) : RowPrinter(out) {}

  absl::Status Begin(const Columns& columns) override {
    for (const ResultSet::Column& column : columns) {
      AppendCsvField(column.name, out_);
      out_.push_back(',');
    }
    out_.back() = '\n';
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& rows) override {
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t i = 0; i < rows.columns(); ++i) {
        if (rows.null(i, row)) {
        } else if (rows.is_text(i, row)) {
          AppendCsvField(rows.text(i, row), out_);
        } else {
          rows.AppendText(i, row, out_);
        }
        out_.push_back(',');
      }
      out_.back() = '\n';
    }
    return Write(out_);
  }
  absl::Status End() override { return Write(out_); }

 private:
  std::string out_;
};

class JsonPrinter final : public RowPrinter {
 public:
  JsonPrinter(const PrintOptions& options, std::ostream& out)
      : RowPrinter(out), member_(options.json_member) {}

  absl::Status Begin(const Columns& columns) override {
    std::set<std::string> seen;
    for (const ResultSet::Column& column : columns) {
      std::string name = column.name;
      for (int n = 2; !seen.insert(name).second; ++n) name = absl::StrCat(column.name, "_", n);
      keys_.push_back(absl::StrCat(JsonString(name), ": "));
    }
    out_ = member_ ? "{\"rows\": [" : "[";
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& rows) override {
    std::string number;
    for (size_t row = 0; row < rows.rows(); ++row) {
      out_ += std::exchange(any_, true) ? ",\n  {" : "\n  {";
      for (size_t i = 0; i < keys_.size(); ++i) {
        if (i > 0) out_ += ", ";
        out_ += keys_[i];
        const Type& type = rows.type(i, row);
        if (!rows.null(i, row) && (type.exact() || type.real())) {
          number.clear();
          rows.AppendText(i, row, number);
          out_ += JsonNumber(number, type.exact());
        } else {
          out_ += JsonValue(rows.Boxed(i, row));
        }
      }
      out_.push_back('}');
    }
    return Write(out_);
  }
  absl::Status End() override {
    out_ += any_ ? "\n]" : "]";
    if (!member_) out_ += "\n";
    return Write(out_);
  }

 private:
  const bool member_;
  std::vector<std::string> keys_;
  std::string out_;
  bool any_ = false;
};

std::string MarkdownCell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

class MarkdownPrinter final : public RowPrinter {
 public:
  MarkdownPrinter(const PrintOptions& options, std::ostream& out) : RowPrinter(out), options_(options) {}

  absl::Status Begin(const Columns& columns) override {
    std::string rule = "|";
    out_ = "|";
    for (const ResultSet::Column& column : columns) {
      absl::StrAppend(&out_, " ", MarkdownCell(Printable(column.name)), " |");
      rule += column.type.exact() ? " ---: |" : " --- |";
    }
    absl::StrAppend(&out_, "\n", rule, "\n");
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& rows) override {
    for (size_t row = 0; row < rows.rows(); ++row) {
      out_ += "|";
      for (size_t i = 0; i < rows.columns(); ++i)
        absl::StrAppend(&out_, " ", MarkdownCell(Cell(rows, i, row, options_)), " |");
      out_ += "\n";
    }
    return Write(out_);
  }
  absl::Status End() override { return Write(out_); }

 private:
  const PrintOptions options_;
  std::string out_;
};

}  // namespace

std::unique_ptr<RowPrinter> RowPrinter::Make(const PrintOptions& options, std::ostream& out) {
  switch (options.format) {
    case OutputFormat::kTable:
      if (options.expanded) return std::make_unique<ExpandedPrinter>(options, out);
      return std::make_unique<TablePrinter>(options, out);
    case OutputFormat::kCsv:
      return std::make_unique<CsvPrinter>(out);
    case OutputFormat::kJson:
      return std::make_unique<JsonPrinter>(options, out);
    case OutputFormat::kMarkdown:
      break;
  }
  return std::make_unique<MarkdownPrinter>(options, out);
}

absl::Status RowPrinter::Write(std::string& text) {
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  out_.flush();
  text.clear();
  if (out_.good()) return absl::OkStatus();
  closed_ = true;
  return absl::CancelledError("the output is closed");
}

}  // namespace nam
