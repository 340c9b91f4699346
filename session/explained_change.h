#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nam::session {

/// An explained change of rows, without the query that finds them.
struct ExplainedChange {
  std::string kind;                     // `Insert into`, `Update`, `Delete`
  std::string table;                    // with its alias
  std::string how;                      // how the rows are found, or their source
  std::vector<std::string> conditions;  // conditions that the access path does not ensure
  // With ANALYZE:
  std::optional<std::string> command;  // `UPDATE 3`
  double ms = 0;
};

}  // namespace nam::session
