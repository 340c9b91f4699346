#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "optimizer/lower_tree.h"
#include "partitioner/pieces.h"
#include "plan/physical.h"
#include "session/record_statements.h"

namespace nam::session {

/// Determines the rows of a query's record tables that compute servers read, at the snapshot of the open
/// transaction:
///
///     access path                        compute servers read
///     keys, ranges of an index,          the rows that the session has found by it, as part of the plan
///     as long as few rows are found
///     the table, or a range of its key   all chunks, without the rows that the transaction has written, and
///                                        those as it has left them, as part of the plan
///
/// Conditions on one table alone are part of its scan either way. Belongs to the session's thread.
class RecordReads final : public optimizer::RecordTables {
 public:
  RecordReads(RecordAccess& access, catalog::Client& catalog, const std::atomic<bool>& cancelled)
      : access_(access), catalog_(catalog), cancelled_(cancelled) {}

  uint64_t snapshot() const override { return access_.snapshot(); }
  /// Finds the rows that an index leads to. ABORTED: the table was dropped since the query was bound.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Prepare(
      const std::shared_ptr<const proto::Table>& table, const std::vector<plan::Expr>& conditions) override;

  /// Completes the scans of the plan, whose tables were prepared in this order.
  void FillIn(const std::vector<uint32_t>& tables, plan::PhysicalPlan& plan);
  /// Divides one of the plan's tables into about `pieces_wanted` parts.
  std::vector<partitioner::Piece> PiecesOf(uint32_t table, uint64_t pieces_wanted) const;

 private:
  struct Read {
    plan::RecordScan scan;  // except its part of TableScan
    uint32_t extents = 0;
    uint32_t chunks = 0;  // per extent
    uint64_t rows() const;
  };
  absl::StatusOr<Read> Find(const proto::Table& table, const std::vector<plan::Expr>& conditions);

  RecordAccess& access_;
  catalog::Client& catalog_;
  const std::atomic<bool>& cancelled_;
  std::vector<Read> reads_;             // in the order of Prepare
  std::map<uint32_t, size_t> read_of_;  // by table of the plan
};

}  // namespace nam::session
