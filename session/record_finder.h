#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "proto/table.pb.h"
#include "session/record_access.h"
#include "sql/record_access.h"

namespace nam::session {

/// Finds rows of record tables in the open transaction, by the access path that their conditions allow.
/// Borrows all; belongs to the session's thread.
class RecordFinder {
 public:
  using OnFound =
      std::function<absl::StatusOr<bool>(std::span<const std::byte> bytes, std::vector<Value> values)>;

  RecordFinder(RecordAccess& access, const std::atomic<bool>& cancelled)
      : access_(access), cancelled_(cancelled) {}

  /// Visits the rows that meet the conditions, which are over columns of table 0.
  absl::Status Find(const proto::Table& table, const partitioner::RecordLayout& layout,
                    const std::vector<plan::Expr>& conjuncts, const OnFound& on_row);
  /// Visits the rows that the path leads to; the caller applies its filter.
  absl::Status Follow(const proto::Table& table, const partitioner::RecordLayout& layout,
                      const sql::AccessPath& path, const RecordAccess::OnRow& on_row);

 private:
  RecordAccess& access_;
  const std::atomic<bool>& cancelled_;
};

/// Whether all of the conditions, over columns of table 0, are true for the row.
absl::StatusOr<bool> HoldsAll(const std::vector<const plan::Expr*>& conditions, const plan::Resolver& row);

}  // namespace nam::session
