#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "txn/index/table_index.h"
#include "txn/rsi/index_keeper.h"
#include "txn/rsi/row_reader.h"
#include "txn/rsi/session_core.h"
#include "txn/session.h"

namespace nam::txn {

/// Visits the rows of a table that the transaction sees: the snapshot, overlaid with the transaction's own
/// writes.
class RowScanner {
 public:
  RowScanner(SessionCore& core, RowReader& reader, IndexKeeper& indexes)
      : core_(core),
        reader_(reader),
        indexes_(indexes),
        batch_(core.batch),
        writes_(core.transaction.writes),
        transaction_(core.transaction) {}

  /// Visits in no order.
  absl::Status Scan(uint32_t table, const RowVisitor& visit);
  /// Session::ScanIndex.
  absl::Status ScanIndex(uint32_t table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit);
  /// Called when the transaction is over.
  void Forget() {
    core_.transaction.sorted_bytes = 0;
    if (!own_rows_.rows.empty()) own_rows_ = {};
  }

 private:
  class IndexScan;
  /// A row as this transaction has written it.
  struct OwnRow {
    const std::byte* key = nullptr;  // in OwnRows
    const std::byte* row = nullptr;
  };
  /// The transaction's writes to a table, in an index's order.
  struct OwnRows {
    AllocationId index;
    uint64_t version = 0;  // the WriteSet::version() that they reflect
    std::vector<OwnRow> rows;
    RowArena keys;
  };

  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status ScanStored(uint32_t table, const RowVisitor& visit, bool& more);
  bool VisitStored(uint32_t table, const std::byte* stored, const RowVisitor& visit);

  // index_scan.cc
  absl::StatusOr<std::span<const OwnRow>> OwnRowsOf(uint32_t table, const TableIndex& index,
                                                    std::span<const std::byte> low,
                                                    std::span<const std::byte> high);
  absl::Status SortOwnRows(uint32_t table, const TableIndex& index);

  SessionCore& core_;
  RowReader& reader_;
  IndexKeeper& indexes_;
  storage::VerbBatch& batch_;
  WriteSet& writes_;
  const RsiTransaction& transaction_;
  OwnRows own_rows_;  // for the index scanned last
};

}  // namespace nam::txn
