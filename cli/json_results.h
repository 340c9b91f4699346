#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace nam::cli {

/// The results of several statements as one JSON document, an array of objects:
///
///     [
///     {"rows": [
///       {"n": 1}
///     ], "command": "SELECT 1", "count": 1},
///     {"command": "INSERT 0 3", "count": 3},
///     {"error": {"sqlstate": "42P01", "message": "table \"t\" does not exist"}}
///     ]
///
/// A RowPrinter writes the rows, with what stands before them in their object.
class JsonResults {
 public:
  /// Borrows it.
  explicit JsonResults(std::ostream& out) : out_(out) {}

  /// Before rows.
  void BeginRows();
  /// After rows; `command` as the statement reports it.
  void EndRows(const std::string& command);
  /// A statement without rows.
  void Add(const std::string& command);
  /// A statement that failed, after all of its rows that were printed, or before the first.
  void AddError(const absl::Status& error, bool after_rows);
  /// Ends the document.
  void End();

 private:
  void Separate();

  std::ostream& out_;
  bool any_ = false;
};

/// `"command": "INSERT 0 3", "count": 3`; without a count for statements that have none.
std::string CommandMembers(const std::string& command);

}  // namespace nam::cli
