#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sql/bound_query.h"

namespace nam::session {

/// A session's prepared statements, by name. One thread.
class PreparedStatements {
 public:
  static constexpr size_t kMost = 1'024;

  /// Adds a statement under its name. 42P05: the name is taken; 54000: there are too many.
  absl::Status Add(const sql::PrepareStatement& statement);
  /// Finds the statement that EXECUTE names; valid until it is removed. 26000: there is none.
  absl::StatusOr<const sql::PrepareStatement*> Find(const sql::ExecuteStatement& statement) const;
  /// Removes the statement of this name, or all if it is empty. 26000: there is none of this name.
  absl::Status Remove(const std::string& name);

 private:
  std::map<std::string, sql::PrepareStatement> statements_;
};

/// The error of a statement that EXECUTE runs. Its position is in the text of the PREPARE, which is not
/// available.
absl::Status ErrorOfPrepared(const absl::Status& error);

}  // namespace nam::session
