#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/chain_groups.h"
#include "partitioner/appended_table.h"
#include "partitioner/assigned_rows.h"
#include "partitioner/column_batch.h"
#include "partitioner/loader.h"
#include "proto/compute.pb.h"
#include "proto/table.pb.h"
#include "session/session.h"

namespace nam::session {

/// Loads a query's rows into a columnar table. Conversions and errors are as in an INSERT
/// (partitioner/assigned_value.h). One thread.
///
///     rows that come to the session ── Add ──▶ loader, in this process ─┐
///     attempts of servers (ForServers), each                            ├─▶ the loader's Commit: all of it,
///     with its own allocation ── Take, once accepted ───────────────────┘   or nothing
class LoadedRows final : public RowReceiver {
 public:
  /// `columns`: the table's columns for the query's; the others get their defaults. Borrows the table, and
  /// the loader, which was begun with the options.
  LoadedRows(const proto::Table& table, const std::vector<int>& columns, partitioner::TableLoader& loader,
             const partitioner::LoadOptions& options);

  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override;
  absl::Status Add(const ResultBatch& rows) override;
  /// Adds one row, with a value for each of the columns.
  absl::Status Add(const std::vector<Value>& row);
  /// Passes the last rows to the loader.
  absl::Status End();
  /// All rows: the session's and those that servers wrote.
  uint64_t rows() const { return rows_ + rows_of_servers_; }

  /// Partitions of the table.
  uint32_t partitions() const { return catalog::PartitionCount(table_); }
  /// Whether servers may leave so many groups.
  bool HasRoomFor(double groups) const { return partitioner::HasRoomFor(table_, groups); }
  /// The order to a server to write rows itself, without the allocation.
  proto::TableWrite ForServers() const;
  /// Begins an allocation for one attempt.
  absl::StatusOr<uint64_t> BeginAttempt();
  /// Takes the groups of an attempt that counts, or ends its allocation if it has written none.
  absl::Status Take(uint64_t allocation, proto::AttemptReply& reply);
  /// Ends the allocation of an attempt that does not count.
  void AbortAttempt(uint64_t allocation) { loader_.AbortExtraAllocation(AllocationId(allocation)); }
  /// Ends everything that servers have written.
  void DropTaken();

 private:
  static constexpr size_t kBatchRows = 16 << 10;
  absl::Status FlushFull();
  absl::Status Flush();

  const proto::Table& table_;
  partitioner::TableLoader& loader_;
  const uint32_t block_bytes_, pointer_group_;
  const std::vector<partitioner::GivenColumn> given_;
  const partitioner::AssignedRows assigned_;
  partitioner::ColumnBatch batch_;
  uint64_t rows_ = 0;
  uint64_t rows_of_servers_ = 0;
};

}  // namespace nam::session
