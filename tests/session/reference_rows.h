#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csv/dialect.h"

namespace nam::testing {

struct ReferenceRow {
  uint64_t line = 1;  // where it begins
  std::vector<std::optional<std::string>> fields;
};

/// What COPY … FROM must find in a file, read byte by byte, as PostgreSQL's CopyReadLineText and
/// CopyReadAttributesCSV and -Text do, and independently of csv/. Where nam differs from PostgreSQL 15: LF
/// and CRLF may mix, a byte order mark and lines without a character are skipped, rows behind `\.` are
/// refused, and a `.tbl` row may have one delimiter more.
struct ReferenceFile {
  std::vector<ReferenceRow> rows;    // without the header
  std::optional<uint64_t> bad_line;  // of the first row that is none; no row behind it is told
};
ReferenceFile ReadReference(std::string_view bytes, const csv::Dialect& dialect, size_t columns);

/// Nothing if the bytes are not whole members, or frames.
std::optional<std::string> UnpackReference(std::string_view packed, csv::Compression compression);
std::string Pack(std::string_view text, csv::Compression compression);

bool IsReferenceUtf8(std::string_view text);

}  // namespace nam::testing
