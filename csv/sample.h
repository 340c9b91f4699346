#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"
#include "csv/field_form.h"

namespace nam::csv {

/// What the first rows of a file show. Blank lines do not count as rows.
struct Sample {
  std::string name;                               // of the file, without folders
  size_t rows = 0;                                // 0: the file has none
  std::vector<std::optional<std::string>> first;  // the first row
  std::vector<FieldForms> below;                  // by column: of the other rows

  size_t width() const { return first.size(); }
  /// Of the first row as a row like the others.
  std::vector<FieldForms> Forms(bool header) const;
};

/// Reads a file's first bytes, and two rows at least, or as many as `least_rows` says. 22P04 if rows have
/// different numbers of fields, or cannot be split; 22021 if the file is UTF-16, 0A000 if it is Parquet.
absl::StatusOr<Sample> ReadSample(const std::string& path, const Dialect& dialect, size_t bytes,
                                  uint64_t least_rows = 0);

/// The delimiter of `,` `;` `|` and tab that makes the most columns, and the escape of a quote, a quote or a
/// backslash, by which rows of the same width come out.
Dialect ChooseDialect(const std::string& path, const Dialect& dialect, bool delimiter_given,
                      bool escape_given);

}  // namespace nam::csv
