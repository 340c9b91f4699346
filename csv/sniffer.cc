#include "csv/sniffer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "csv/portion_reader.h"
#include "csv/row_splitter.h"
#include "types/characters.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::csv {
namespace {

constexpr size_t kRowsToChooseBy = 100;

/// Abseil's own string_view is another type here.
absl::string_view Abseil(std::string_view text) {
  return {text.data(), text.size()};
}

bool IsWhole(std::string_view text) {
  int64_t number = 0;
  return !text.empty() && (IsDigit(text[0]) || text[0] == '-') && absl::SimpleAtoi(Abseil(text), &number);
}

bool IsNumber(std::string_view text) {
  double number = 0;
  const bool digits = std::any_of(text.begin(), text.end(), IsDigit);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
  });
  return digits && plain && absl::SimpleAtod(Abseil(text), &number) && std::isfinite(number);
}

/// The pattern's 9 stands for a digit; other characters are literal.
bool Matches(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (pattern[i] == '9' ? !IsDigit(text[i]) : text[i] != pattern[i]) return false;
  }
  return true;
}

bool IsDate(std::string_view text) {
  return Matches(text, "9999-99-99") && ParseDate(text).ok();
}

bool IsTimestamp(std::string_view text) {
  if (text.size() < 16 || !IsDate(text.substr(0, 10)) || (text[10] != ' ' && text[10] != 'T')) return false;
  if (!ParseTimestamp(absl::StrCat(Abseil(text.substr(0, 10)), " ", Abseil(text.substr(11)))).ok())
    return false;
  std::string_view time = text.substr(11);
  if (time.size() > 9 && time[8] == '.' && std::all_of(time.begin() + 9, time.end(), IsDigit))
    time = time.substr(0, 8);
  return Matches(time, "99:99") || Matches(time, "99:99:99");
}

FieldKind KindOf(std::string_view text) {
  if (absl::EqualsIgnoreCase(Abseil(text), "true") || absl::EqualsIgnoreCase(Abseil(text), "false"))
    return FieldKind::kBoolean;
  if (IsWhole(text)) return FieldKind::kWhole;
  if (IsNumber(text)) return FieldKind::kNumber;
  if (IsDate(text)) return FieldKind::kDate;
  if (IsTimestamp(text)) return FieldKind::kTimestamp;
  return FieldKind::kText;
}

FieldKind Common(FieldKind a, FieldKind b) {
  if (a == b || b == FieldKind::kNone) return a;
  if (a == FieldKind::kNone) return b;
  const auto both = std::minmax(a, b);
  if (both == std::minmax(FieldKind::kWhole, FieldKind::kNumber)) return FieldKind::kNumber;
  if (both == std::minmax(FieldKind::kDate, FieldKind::kTimestamp)) return FieldKind::kTimestamp;
  return FieldKind::kText;
}

using Rows = std::vector<std::vector<std::optional<std::string>>>;

absl::Status AtLine(const Portion& portion, uint64_t lines_before, const absl::Status& error) {
  SqlError placed = *SqlErrorOf(error);
  placed.message = absl::StrCat(portion.source, ":", portion.first_line + lines_before, ": ", placed.message);
  return ToStatus(placed);
}

/// Rows of the portion, at most so many; without blank lines.
absl::StatusOr<Rows> RowsOf(const Portion& portion, const Dialect& dialect, size_t most) {
  Rows rows;
  RowSplitter splitter(dialect);
  splitter.Begin(portion.text, portion.last);
  std::vector<Field> fields;
  while (rows.size() < most) {
    const absl::StatusOr<bool> more = splitter.Next(fields);
    if (!more.ok()) return AtLine(portion, splitter.lines_before(), more.status());
    if (!*more) break;
    if (splitter.line().empty()) continue;
    auto& row = rows.emplace_back();
    for (const Field& field : fields)
      row.push_back(field.null ? std::nullopt : std::optional(std::string(field.text)));
  }
  return rows;
}

/// The number of fields in all of the rows; 0 if it varies, or cannot be determined.
size_t WidthBy(const Portion& portion, Dialect dialect, char delimiter) {
  dialect.delimiter = delimiter;
  const absl::StatusOr<Rows> rows = RowsOf(portion, dialect, kRowsToChooseBy);
  if (!rows.ok() || rows->empty()) return 0;
  const size_t width = rows->front().size();
  return std::all_of(rows->begin(), rows->end(), [&](const auto& row) { return row.size() == width; }) ? width
                                                                                                       : 0;
}

void ChooseDelimiter(const Portion& portion, Dialect& dialect) {
  size_t most = std::max<size_t>(WidthBy(portion, dialect, dialect.delimiter), 1);
  for (const char delimiter : {',', ';', '|', '\t'}) {
    const size_t width = WidthBy(portion, dialect, delimiter);
    if (width <= most) continue;
    most = width;
    dialect.delimiter = delimiter;
  }
}

std::vector<FieldKind> KindsOf(const Rows& rows, size_t first, size_t width) {
  std::vector<FieldKind> kinds(width, FieldKind::kNone);
  for (size_t r = first; r < rows.size(); ++r) {
    for (size_t c = 0; c < width; ++c) {
      if (rows[r][c].has_value()) kinds[c] = Common(kinds[c], KindOf(*rows[r][c]));
    }
  }
  return kinds;
}

/// The first row has text in all columns, and others have something else below; or all is text, and its names
/// do not occur again.
bool IsHeader(const Rows& rows, const std::vector<FieldKind>& below) {
  std::set<std::string> names;
  for (const auto& name : rows[0]) {
    if (!name.has_value() || KindOf(*name) != FieldKind::kText || !names.insert(*name).second) return false;
  }
  const bool typed = std::any_of(below.begin(), below.end(), [](FieldKind kind) {
    return kind != FieldKind::kText && kind != FieldKind::kNone;
  });
  if (typed || rows.size() == 1) return typed;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    for (size_t r = 1; r < rows.size(); ++r) {
      if (rows[r][c] == rows[0][c]) return false;
    }
  }
  return true;
}

/// Names as the shell's user writes them, made unique. 22021 if one is not UTF-8.
absl::StatusOr<std::vector<std::string>> NamesOf(const Rows& rows, bool header, size_t width,
                                                 const std::string& file) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (size_t c = 0; c < width; ++c) {
    std::string name = header ? absl::AsciiStrToLower(rows[0][c].value_or("")) : "";
    if (int bad = 0; !IsCleanUtf8(name, &bad)) {
      const bool wide = c == 0 && (absl::StartsWith(name, "\xff\xfe") || absl::StartsWith(name, "\xfe\xff"));
      return UserError(sqlstate::kBadEncoding,
                       absl::StrCat(file, ":1: the name of column ", c + 1, " is not UTF-8, from its byte ",
                                    bad + 1, " on"),
                       -1,
                       wide ? "the file is UTF-16: convert it, for example by iconv -f UTF-16 -t UTF-8"
                            : "convert the file to UTF-8, or say header => false");
    }
    if (name.empty()) name = absl::StrCat("column", c + 1);
    std::string unique = name;
    for (int n = 2; !taken.insert(unique).second; ++n) unique = absl::StrCat(name, "_", n);
    names.push_back(std::move(unique));
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<SniffedColumn>> Sniff(const std::string& path, const SniffOptions& options,
                                                 Dialect& dialect) {
  struct stat about {};
  if (stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
    return UserError(sqlstate::kWrongObjectType,
                     absl::StrCat(Quote(path), " is no file that can be read twice"), -1,
                     "CREATE the TABLE with its columns, then COPY");
  }
  Dialect plain = dialect;
  plain.header = false;
  PortionReader reader({path}, plain);
  Portion portion;
  NAM_ASSIGN_OR_RETURN(const bool any, reader.Next(portion));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!any) {
    return UserError(sqlstate::kBadCopyFormat, absl::StrCat(name, " is empty: its columns cannot be told"),
                     -1, "CREATE the TABLE with its columns, then COPY");
  }
  if (!options.delimiter_given) ChooseDelimiter(portion, plain);
  dialect.delimiter = plain.delimiter;
  NAM_ASSIGN_OR_RETURN(const Rows rows, RowsOf(portion, plain, SIZE_MAX));
  if (rows.empty()) return UserError(sqlstate::kBadCopyFormat, absl::StrCat(name, " has no row"), -1);
  size_t width = rows[0].size();
  for (const auto& row : rows) {
    if (row.size() == width) continue;
    return UserError(sqlstate::kBadCopyFormat,
                     absl::StrCat(name, ": its first row has ", width, " fields, another one ", row.size()),
                     -1, "say delimiter => '…', or CREATE the TABLE with its columns, then COPY");
  }
  // Rows of `.tbl` files have one extra delimiter, at the end of the line.
  const bool closed =
      dialect.quote == '\0' && width > 1 &&
      std::all_of(rows.begin(), rows.end(), [](const auto& row) { return !row.back().has_value(); });
  width -= closed ? 1 : 0;
  std::vector<FieldKind> kinds = KindsOf(rows, 1, width);
  dialect.header = options.header.value_or(IsHeader(rows, kinds));
  if (!dialect.header) kinds = KindsOf(rows, 0, width);
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesOf(rows, dialect.header, width, name));
  std::vector<SniffedColumn> columns;
  for (size_t c = 0; c < width; ++c) columns.push_back({std::move(names[c]), kinds[c]});
  return columns;
}

}  // namespace nam::csv
