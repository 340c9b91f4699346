#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "session/session.h"

namespace nam {

enum class OutputFormat { kTable, kCsv, kJson, kMarkdown };
/// `table`, `csv`, `json`, `markdown`.
absl::StatusOr<OutputFormat> ParseOutputFormat(std::string_view name);

struct PrintOptions {
  OutputFormat format = OutputFormat::kTable;
  bool expanded = false;  // table only: per row, a block of `name | value` lines
  std::string null_text;  // table and markdown
  bool footer = true;     // table only: `(13 rows)`
  /// json only: begins an object whose first member is the rows; the caller ends it.
  bool json_member = false;
};

/// A statement's rows as text that ends with a newline. Empty without columns, in any format.
///  - table: aligned, numbers to the right, one line per line of text, control characters escaped
///  - csv: RFC 4180 with a header line (lines end with a newline only); NULL is an empty field, an empty
///    string a quoted one
///  - json: an array of objects; numbers as JsonNumber, dates as strings. Columns with equal names are
///    numbered: `sum`, `sum_2`
///  - markdown: a pipe table
std::string Render(const session::ResultSet& result, const PrintOptions& options);

/// One value as JSON.
std::string JsonValue(const Value& value);
/// A number's text as JSON. Most programs read JSON's numbers as double precision: an integer beyond 2^53,
/// and another exact number of more than 15 digits, which that does not keep, is a string; so are NaN and
/// Infinity. `exact`: it is no floating-point number.
std::string JsonNumber(std::string_view text, bool exact);
/// A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);
/// `rows` of the result as JSON: an array of arrays, one line.
std::string JsonRows(const session::ResultSet& result);

}  // namespace nam
