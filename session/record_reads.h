#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "partitioner/pieces.h"
#include "plan/physical.h"
#include "session/record_statements.h"
#include "sql/bound_query.h"

namespace nam::session {

/// What a query over several tables reads of its record tables, at the snapshot of the transaction under way:
///
///     access path                        compute servers read
///     keys, ranges of an index,          the rows that the session has found by it, as part of the plan
///     as long as few rows are found
///     the table, or a range of its key   all chunks, without the rows that the transaction has written, and
///                                        those as it has left them, as part of the plan
///
/// Conditions on one table alone are part of its scan either way. Of the session's thread.
class RecordReads {
 public:
  /// ABORTED: a table was dropped since the query was bound.
  static absl::StatusOr<RecordReads> Make(const sql::BoundQuery& query, RecordAccess& access,
                                          catalog::Client& catalog, const std::atomic<bool>& cancelled);

  /// The query over tables with as many rows as there may be, which nobody has counted: for estimates.
  sql::BoundQuery WithEstimates(const sql::BoundQuery& query) const;
  /// Into the scans of a plan of the query.
  void FillIn(plan::PhysicalPlan& plan) const;
  /// One of the query's tables in about `pieces_wanted` parts.
  std::vector<partitioner::Piece> PiecesOf(size_t table, uint64_t pieces_wanted) const;

 private:
  struct Read {
    plan::RecordScan scan;  // but for what it has of TableScan
    uint32_t extents = 0;
    uint32_t chunks = 0;  // of an extent
    uint64_t rows() const;
  };
  static absl::StatusOr<Read> Find(const sql::BoundQuery& query, size_t table, RecordAccess& access,
                                   catalog::Client& catalog, const std::atomic<bool>& cancelled);

  std::vector<Read> reads_;  // by table of the query; those of others are empty
};

}  // namespace nam::session
