#include "csv/sample.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/portion_reader.h"
#include "csv/row_splitter.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr size_t kRowsToChooseBy = 100, kBytesToChooseBy = 64 << 10;

constexpr char kParquetBegin[] = "PAR1";

/// A header alone does not tell what the columns have.
constexpr uint64_t kLeastRows = 2;

/// UTF-16 has its mark, or every other byte of text in Latin letters is a zero.
bool IsWide(std::string_view text) {
  constexpr size_t kBytes = 64;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return true;
  const std::string_view begin = text.substr(0, kBytes);
  const auto zeros = static_cast<size_t>(std::count(begin.begin(), begin.end(), '\0'));
  return zeros > 1 && zeros >= begin.size() / 3;
}

/// The first rows of a file, without blank lines: those of its first portion, and more if these are few.
class FirstRows {
 public:
  FirstRows(const std::string& path, const Dialect& dialect, size_t bytes, uint64_t least)
      : least_(least), reader_({path}, WithoutHeader(dialect), bytes), splitter_(dialect) {
    portion_.source = path.substr(path.rfind('/') + 1);
  }

  absl::StatusOr<bool> Next(std::vector<Field>& fields) {
    while (true) {
      const absl::StatusOr<bool> more = splitter_.Next(fields);
      if (!more.ok()) return AtLine(more.status());
      if (*more && splitter_.line().empty()) continue;
      if (*more) {
        ++rows_;
        return true;
      }
      if (begun_ && (portion_.last || rows_ >= least_)) return false;
      NAM_ASSIGN_OR_RETURN(const bool any, reader_.Next(portion_));
      if (!any) return false;
      begun_ = true;
      if (portion_.first && absl::StartsWith(portion_.text, kParquetBegin)) {
        return Refusal(absl::StrCat(portion_.source, " is a Parquet file, which is not read"), -1,
                       "write it as CSV, for example by DuckDB: COPY 'file.parquet' TO 'file.csv'");
      }
      if (portion_.first && IsWide(portion_.text)) {
        return UserError(sqlstate::kBadEncoding, absl::StrCat(portion_.source, " is UTF-16, not UTF-8"), -1,
                         "convert it, for example by iconv -f UTF-16 -t UTF-8");
      }
      splitter_.Begin(portion_.text, portion_.last);
    }
  }

  const std::string& file() const { return portion_.source; }
  absl::Status AtLine(const absl::Status& error) const {
    SqlError placed = *SqlErrorOf(error);
    placed.message = absl::StrCat(portion_.source, ":", portion_.first_line + splitter_.lines_before(), ": ",
                                  placed.message);
    return ToStatus(placed);
  }

 private:
  static Dialect WithoutHeader(Dialect dialect) {
    dialect.header = false;
    return dialect;
  }

  const uint64_t least_;
  bool begun_ = false;
  uint64_t rows_ = 0;
  PortionReader reader_;
  RowSplitter splitter_;
  Portion portion_;
};

/// The number of fields in each of the first rows; 0 if it varies, or cannot be determined.
size_t WidthBy(const std::string& path, const Dialect& dialect) {
  FirstRows first_rows(path, dialect, kBytesToChooseBy, kLeastRows);
  std::vector<Field> fields;
  size_t width = 0;
  for (size_t rows = 0; rows < kRowsToChooseBy; ++rows) {
    const absl::StatusOr<bool> more = first_rows.Next(fields);
    if (!more.ok()) return 0;
    if (!*more) break;
    if (rows > 0 && fields.size() != width) return 0;
    width = fields.size();
  }
  return width;
}

absl::Status OfDifferentWidth(size_t first, size_t other) {
  return UserError(sqlstate::kBadCopyFormat,
                   absl::StrCat("the row has ", other, " fields, the first one ", first), -1,
                   "say delimiter => '…', or CREATE the TABLE with its columns, then COPY");
}

}  // namespace

std::vector<FieldForms> Sample::Forms(bool header) const {
  std::vector<FieldForms> forms = below;
  for (size_t c = 0; !header && c < first.size(); ++c) {
    if (first[c].has_value()) forms[c].Add(*first[c]);
  }
  return forms;
}

absl::StatusOr<Sample> ReadSample(const std::string& path, const Dialect& dialect, size_t bytes,
                                  uint64_t least_rows) {
  FirstRows first_rows(path, dialect, bytes, std::max(least_rows, kLeastRows));
  Sample sample;
  sample.name = first_rows.file();
  std::vector<Field> fields;
  // Rows of `.tbl` files have one extra delimiter, at the end of the line.
  bool closed = !dialect.has_quotes() && dialect.delimiter == '|';
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, first_rows.Next(fields));
    if (!more) break;
    closed = closed && fields.size() > 1 && fields.back().null;
    if (sample.rows++ == 0) {
      for (const Field& field : fields)
        sample.first.push_back(field.null ? std::nullopt : std::optional(std::string(field.text)));
      sample.below.resize(fields.size(), FieldForms(dialect.formats));
      continue;
    }
    if (fields.size() != sample.width())
      return first_rows.AtLine(OfDifferentWidth(sample.width(), fields.size()));
    for (size_t c = 0; c < fields.size(); ++c) {
      if (!fields[c].null) sample.below[c].Add(fields[c].text);
    }
  }
  if (closed && sample.rows > 0) {
    sample.first.pop_back();
    sample.below.pop_back();
  }
  return sample;
}

Dialect ChooseDialect(const std::string& path, const Dialect& dialect, bool delimiter_given,
                      bool escape_given) {
  Dialect best = dialect;
  size_t most = std::max<size_t>(WidthBy(path, best), 1);
  for (const char escape : {dialect.escape, '\\'}) {
    if (escape != dialect.escape && (escape_given || !dialect.has_quotes())) break;
    for (const char delimiter : {dialect.delimiter, ',', ';', '|', '\t'}) {
      if (delimiter_given && delimiter != dialect.delimiter) continue;
      Dialect candidate = dialect;
      candidate.escape = escape;
      candidate.delimiter = delimiter;
      const size_t width = WidthBy(path, candidate);
      if (width <= most) continue;
      most = width;
      best = candidate;
    }
  }
  return best;
}

}  // namespace nam::csv
