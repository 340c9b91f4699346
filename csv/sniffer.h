#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/byte_source.h"
#include "csv/dialect.h"
#include "csv/field_form.h"

namespace nam::csv {

struct SniffedColumn {
  std::string name;     // from the header, in lower case; else column0, column1, …
  std::string written;  // as the header has it
  FieldForm form = FieldForm::kNone;
};

/// Where the rows of one of several files go.
struct SniffedFile {
  std::string path;
  FileVersion version;  // before its first byte was looked at
  bool header = false;
  std::vector<int> columns;  // by the file's field: the column that it belongs to

  bool operator==(const SniffedFile&) const = default;
};

struct SniffedFiles {
  std::vector<SniffedColumn> columns;
  std::vector<SniffedFile> files;
};

struct SniffOptions {
  bool delimiter_given = false;  // otherwise the one of , ; | and tab that makes the most columns
  bool escape_given = false;     // otherwise a quote, or a backslash if that makes more columns
  std::optional<bool> header;    // nullopt: csv/header.h tells, of each file
  uint64_t sample_rows = 0;      // types are told from; 0: those in a megabyte
  bool union_by_name = false;    // columns are those of all files; a file that has no such column has NULLs
};

/// Derives the columns from the first rows of all files. Sets what the dialect leaves open. Columns go by
/// name if all files have headers, else by their place. 22P04 if rows have different numbers of fields, or a
/// file's columns are not the others'.
absl::StatusOr<SniffedFiles> Sniff(const std::vector<std::string>& paths, const SniffOptions& options,
                                   Dialect& dialect);

}  // namespace nam::csv
