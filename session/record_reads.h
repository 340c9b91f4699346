#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"
#include "optimizer/lower_tree.h"
#include "partitioner/pieces.h"
#include "plan/physical.h"
#include "proto/compute.pb.h"
#include "session/query_scratch.h"
#include "session/record_access.h"

namespace nam::session {

/// The rows of a query's record tables that compute servers read, at the snapshot of the open transaction:
///
///     access path                        compute servers read
///     keys, ranges of an index,          the rows that the session finds by it when the stage begins
///     as long as few rows are found
///     the table, or a range of its key   all chunks, without the rows that the transaction has written, and
///                                        those as it has left them
///
/// What the session finds, or the transaction has written, is an input of the stage (RecordInput). Planning
/// reads nothing. Conditions on one table alone are part of its scan either way. Belongs to the session's
/// thread.
class RecordReads final : public optimizer::RecordTables {
 public:
  RecordReads(RecordAccess& access, catalog::Client& catalog, QueryScratch& scratch,
              const std::atomic<bool>& cancelled)
      : access_(access), catalog_(catalog), scratch_(scratch), cancelled_(cancelled) {}

  uint64_t snapshot() const override { return access_.snapshot(); }
  /// Chooses the access path.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Prepare(
      const std::shared_ptr<const proto::Table>& table, const std::vector<plan::Expr>& conditions) override;

  /// Completes the scans of the plan, whose tables were prepared in this order.
  void FillIn(const std::vector<uint32_t>& tables, plan::PhysicalPlan& plan);
  /// The scans with their paths, for EXPLAIN.
  std::vector<optimizer::TransactionScan> Scans(const plan::PhysicalPlan& plan) const;

  /// Whether servers scan a record table in the stage.
  bool AreReadBy(const plan::PhysicalPlan& plan, uint32_t stage) const;
  /// Called when the stage begins: finds the rows that paths lead to. ABORTED: a table was dropped since the
  /// query was bound. 53…: the rows are many, and scratch memory has no room for them.
  absl::StatusOr<std::vector<proto::RecordInput>> Fetch(const plan::PhysicalPlan& plan, uint32_t stage);
  /// Divides one of the plan's tables into about `pieces_wanted` parts: before Fetch by what is expected.
  std::vector<partitioner::Piece> PiecesOf(uint32_t table, uint64_t pieces_wanted) const;

 private:
  struct Read {
    std::shared_ptr<const proto::Table> table;  // as it was bound
    sql::AccessPath path;                       // without its filter
    plan::RecordScan scan;                      // except its part of TableScan
    std::string stored;                         // the table that has the rows
    uint64_t allocation = 0;                    // its own
    bool fetched = false;
    bool rows_only = false;  // stored rows are not read
    uint64_t rows = 0;       // in scratch memory
    uint32_t extents = 0;
    uint32_t chunks = 0;  // per extent
    /// An upper bound, unless an index leads to the rows.
    uint64_t rows_expected() const;
  };
  const Read* ReadOf(const plan::Pipeline& pipeline) const;
  absl::Status FetchOne(Read& read, proto::RecordInput& input);
  /// Whether all rows of the path were found; else there are too many.
  absl::StatusOr<bool> FindRows(const Read& read, std::vector<std::string>& rows);
  absl::Status LeaveWrites(Read& read, proto::RecordInput& input);
  /// As of now, after the snapshot was taken: all rows that the snapshot sees have their extents by then.
  absl::Status FindExtents(Read& read);

  RecordAccess& access_;
  catalog::Client& catalog_;
  QueryScratch& scratch_;
  const std::atomic<bool>& cancelled_;
  std::vector<Read> reads_;             // in the order of Prepare
  std::map<uint32_t, size_t> read_of_;  // by table of the plan
};

}  // namespace nam::session
