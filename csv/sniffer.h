#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"

namespace nam::csv {

/// How a column's fields look. In this order each kind but the last holds all values of some before it:
/// whole numbers are numbers, days are times, and everything is text.
enum class FieldKind { kNone, kBoolean, kWhole, kNumber, kDate, kTimestamp, kText };

struct SniffedColumn {
  std::string name;                   // of the header, in lower case; else column1, column2, …
  FieldKind kind = FieldKind::kNone;  // kNone: there is no value
};

struct SniffOptions {
  bool delimiter_given = false;  // otherwise the one of , ; | and tab that makes the most columns
  std::optional<bool> header;    // nothing: it is one if it has no number where the column below has
};

/// The columns that the first megabyte of a file has. Finds out what of the dialect is not given, and sets
/// it. 22P04 if rows have different numbers of fields, or none can be told.
absl::StatusOr<std::vector<SniffedColumn>> Sniff(const std::string& path, const SniffOptions& options,
                                                 Dialect& dialect);

}  // namespace nam::csv
