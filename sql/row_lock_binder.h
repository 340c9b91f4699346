#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "sql/logical_query.h"

namespace nam::sql {

/// A table of FROM whose rows a locking clause names.
struct LockedRelation {
  int relation = -1;
  bool waits = true;  // false: NOWAIT
};

/// The clause for messages, such as `FOR UPDATE`, with its place in the statement.
struct LockingWords {
  const char* words = "";
  int position = -1;
};
LockingWords WordsOf(const Node& clause);

/// FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE and FOR KEY SHARE of a SELECT whose FROM is bound; `owner` is its
/// LogicalSelect. All lock alike. Returns each table once, in FROM's order.
absl::StatusOr<std::vector<LockedRelation>> BindRowLocks(LogicalContext& context, const Surroundings& around,
                                                         const LogicalSelect* owner, const Node& select);

}  // namespace nam::sql
