#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nam::csv {

/// A row that ends the file's rows.
inline constexpr std::string_view kEndMarker = "\\.";

enum class Compression { kNone, kGzip, kZstd };

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
  std::string null_text;                   // a field with this text, without quotes, is NULL
  bool header = false;                     // the first row has names
  std::optional<Compression> compression;  // nullopt: by the file's name

  /// Not a byte of any text.
  static constexpr char kNoQuote = '\0';
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
