#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "csv/dialect.h"

namespace nam::csv {

/// Appends rows to a text like PostgreSQL's COPY … TO. RowSplitter reads the same fields from it. Belongs to
/// one thread.
class RowWriter {
 public:
  /// `force_quote`, for CSV: columns whose texts are always quoted; empty: none.
  RowWriter(const Dialect& dialect, size_t columns, std::vector<bool> force_quote = {});

  /// The next field of the row. 22P04 if a dialect without quotes cannot write the text.
  absl::Status Add(std::string_view text, std::string& out);
  void AddNull(std::string& out);
  /// The row with the columns' names, without forced quotes.
  absl::Status AddHeader(const std::vector<std::string>& names, std::string& out);
  void EndRow(std::string& out);

 private:
  void Begin(std::string& out);
  absl::Status AddUnquoted(std::string_view text, std::string& out);
  void AddCsv(std::string_view text, bool quotes, std::string& out);
  void AddText(std::string_view text, std::string& out);
  bool NeedsQuotes(std::string_view text) const;

  const Dialect dialect_;
  const size_t columns_;
  const std::vector<bool> force_quote_;
  bool special_[256] = {};  // bytes that CSV quotes, and text escapes by a backslash
  size_t column_ = 0;       // of the next field
};

}  // namespace nam::csv
