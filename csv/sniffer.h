#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"

namespace nam::csv {

/// The form of a column's fields. In this order each kind but the last holds all values of some before it:
/// whole numbers are numbers, days are times, and everything is text.
enum class FieldKind { kNone, kBoolean, kWhole, kNumber, kDate, kTimestamp, kText };

struct SniffedColumn {
  std::string name;                   // from the header, in lower case; else column1, column2, …
  FieldKind kind = FieldKind::kNone;  // kNone: there is no value
};

struct SniffOptions {
  bool delimiter_given = false;  // otherwise the one of , ; | and tab that makes the most columns
  std::optional<bool> header;    // nullopt: there is one if it has no number where the column below has
};

/// Derives the columns from a file's first megabyte. Sets what the dialect leaves open. 22P04 if rows have
/// different numbers of fields, or none fits.
absl::StatusOr<std::vector<SniffedColumn>> Sniff(const std::string& path, const SniffOptions& options,
                                                 Dialect& dialect);

}  // namespace nam::csv
