#pragma once

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/lower_tree.h"
#include "plan/expression.h"
#include "proto/table.pb.h"
#include "session/record_access.h"
#include "sql/record_access.h"

namespace nam::execution {
class LocalStage;
}

/// Rows of record tables, as the open transaction sees them.
namespace nam::session {

/// Visits the rows that the path leads to; the caller applies its filter.
absl::Status FollowPath(RecordAccess& access, const std::atomic<bool>& cancelled, const proto::Table& table,
                        const sql::AccessPath& path, const RecordAccess::OnRow& on_row);

/// Feeds a stage of the session the rows that its scan wants.
absl::Status FeedRecords(RecordAccess& access, const std::atomic<bool>& cancelled,
                         const optimizer::TransactionScan& scan, const proto::Table& table,
                         execution::LocalStage& stage);

/// Whether all of the conditions, over columns of table 0, are true for the row.
absl::StatusOr<bool> HoldsAll(const std::vector<const plan::Expr*>& conditions, const plan::Resolver& row);

}  // namespace nam::session
