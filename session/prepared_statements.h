#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sql/bound_query.h"

namespace nam::session {

/// What a session has prepared, by name. One thread.
class PreparedStatements {
 public:
  static constexpr size_t kMost = 1'024;

  /// 42P05 if there is one of this name, 54000 if there are too many.
  absl::Status Add(const sql::PrepareStatement& statement);
  /// 26000 if there is none. Valid until it is removed.
  absl::StatusOr<const sql::PrepareStatement*> Find(const sql::ExecuteStatement& statement) const;
  /// Empty: all.
  absl::Status Remove(const std::string& name);

 private:
  std::map<std::string, sql::PrepareStatement> statements_;
};

}  // namespace nam::session
