#include "session/prepared_statements.h"

#include "absl/strings/str_cat.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

absl::Status NoSuchStatement(const std::string& name, int position) {
  return UserError(sqlstate::kNoSuchPreparedStatement,
                   absl::StrCat("prepared statement ", Quote(name), " does not exist"), position,
                   "PREPARE it in this session");
}

}  // namespace

absl::Status PreparedStatements::Add(const sql::PrepareStatement& statement) {
  if (statements_.contains(statement.name)) {
    return UserError(sqlstate::kDuplicatePreparedStatement,
                     absl::StrCat("prepared statement ", Quote(statement.name), " already exists"), -1,
                     "DEALLOCATE it first");
  }
  if (statements_.size() >= kMost) {
    return UserError(sqlstate::kLimitExceeded, "too many prepared statements", -1,
                     absl::StrCat("a session has ", kMost, " at most: DEALLOCATE some"));
  }
  statements_.emplace(statement.name, statement);
  return absl::OkStatus();
}

absl::StatusOr<const sql::PrepareStatement*> PreparedStatements::Find(
    const sql::ExecuteStatement& statement) const {
  const auto found = statements_.find(statement.name);
  if (found == statements_.end()) return NoSuchStatement(statement.name, statement.position);
  return &found->second;
}

absl::Status PreparedStatements::Remove(const std::string& name) {
  if (name.empty()) {
    statements_.clear();
  } else if (statements_.erase(name) == 0) {
    return NoSuchStatement(name, -1);
  }
  return absl::OkStatus();
}

absl::Status ErrorOfPrepared(const absl::Status& error) {
  std::optional<SqlError> positioned = SqlErrorOf(error);
  if (!positioned.has_value() || positioned->position < 0) return error;
  positioned->position = -1;
  return ToStatus(*positioned);
}

}  // namespace nam::session
