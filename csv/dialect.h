#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nam::csv {

/// A row that ends the file's rows.
inline constexpr std::string_view kEndMarker = "\\.";

enum class Compression { kNone, kGzip, kZstd };

/// How values are written where the user says so.
struct FieldFormats {
  static constexpr char kNoThousands = '\0';

  char decimal_separator = '.';
  char thousands = kNoThousands;  // between each three digits before the decimals
  std::string date, timestamp;    // csv/time_format.h; empty: csv/field_form.h tells

  bool operator==(const FieldFormats&) const = default;
};

/// How a file writes rows: PostgreSQL's two formats of COPY.
struct Dialect {
  enum class Format {
    kCsv,   // quotes; a row ends at a line end outside of quotes
    kText,  // backslashes instead of quotes: \N is NULL, \t a tab, \. the end
  };

  Format format = Format::kCsv;
  char delimiter = ',';
  char quote = '"';                        // CSV; kNoQuote: no quotes
  char escape = '"';                       // CSV: precedes a quote within quotes
  bool quotes_begin_fields = false;        // CSV: another quote is a text; PostgreSQL's stand anywhere
  std::string null_text;                   // a field with this text, without quotes, is NULL
  bool header = false;                     // the first row has names
  std::optional<Compression> compression;  // nullopt: by the file's name
  // Files in queries alone have these.
  uint64_t skipped_lines = 0;  // at the file's begin
  char comment = kNoComment;   // begins lines that are no rows
  FieldFormats formats;

  /// Not a byte of any text.
  static constexpr char kNoQuote = '\0', kNoComment = '\0';
  bool has_quotes() const { return format == Format::kCsv && quote != kNoQuote; }

  bool operator==(const Dialect&) const = default;

  static Dialect Csv() { return {}; }
  static Dialect Text() { return {.format = Format::kText, .delimiter = '\t', .null_text = "\\N"}; }
};

/// Removes the `\r` of a line end `\r\n`, of which the caller has removed the `\n`.
inline std::string_view WithoutReturn(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace nam::csv
