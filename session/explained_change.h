#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nam::session {

/// A change of rows that is explained, without the query that finds them.
struct ExplainedChange {
  std::string kind;                     // `Insert into`, `Update`, `Delete`
  std::string table;                    // with its alias
  std::string how;                      // how the rows are found, or where they come from
  std::vector<std::string> conditions;  // that are left
  // With ANALYZE:
  std::optional<std::string> command;  // `UPDATE 3`
  double ms = 0;
};

}  // namespace nam::session
