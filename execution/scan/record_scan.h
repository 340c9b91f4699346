#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/memory_budget.h"
#include "execution/scan/piece_claims.h"
#include "execution/scan/record_select.h"
#include "execution/scan/scan_totals.h"
#include "execution/task.h"
#include "proto/table.pb.h"
#include "txn/record_layout.h"
#include "txn/tables.h"

namespace nam::execution {

/// Reads the rows of a record table that a snapshot sees, and passes those that meet its conditions.
///
///     piece: chunks of an extent ─▶ RecordReader ─▶ rows ─▶ hidden keys, ranges ─▶ columns ─▶ filters ─▶
///     piece: own rows ─────────────────────────────────────────────▶ ranges ──────────────▲
///
/// The snapshot is of a session whose transaction is under way, and holds as long as that lasts. A scan that
/// outlasts it fails with ABORTED (txn/snapshot_scan.h), as it does when a version was replaced or the table
/// dropped. Rows that the transaction has written itself come from its session, by scratch memory.
///
/// Columns are arrays of values that the task owns; texts point into the rows as they were READ. Both stay
/// until the task is asked again.
class RecordScan final : public Source {
 public:
  struct Options {
    std::shared_ptr<const proto::Table> table;
    txn::TableDescription records;  // of the same table; every task opens its extents
    txn::TransactionState state;
    uint64_t snapshot = 0;
    RecordSelect::Options select;
    /// Whole primary keys, as rows hold them; both ends are included. None: all rows.
    std::vector<std::string> range_low, range_high;
    std::vector<std::string> own_rows;              // the transaction's writes, as tables store them
    std::vector<std::string> hidden_keys;           // primary keys of stored rows to skip
    bool own_rows_only = false;                     // stored rows are not read
    std::shared_ptr<const HeldBytes> input_memory;  // what these rows and keys take; null: unbounded
    uint64_t window_max = kChunkRows;               // blocks READ together, if channels carry them
  };
  /// INVALID_ARGUMENT if columns, slots, pieces, keys or rows do not fit the table; FAILED_PRECONDITION if
  /// `records` is another version of it. The queue outlives the scan.
  static absl::StatusOr<std::unique_ptr<RecordScan>> Make(Options options, PieceQueue& queue);
  ~RecordScan() override;

  /// Uses the context's channels; the claim channel is needed if the queue has a counter.
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  bool exhausted() const override { return queue_.exhausted(); }
  void Count(proto::PipelineCounters& out) const override;
  void Report(proto::AttemptReply& out) const override { totals().Report(out); }
  const RecordSelect& select() const { return select_; }
  /// Over tasks that have ended; blocks are records'. Any thread.
  ScanTotals totals() const;

 private:
  friend class RecordScanTask;
  RecordScan(Options options, RecordSelect select, PieceQueue& queue);
  absl::Status CheckTable() const;
  absl::Status CheckPieces() const;
  absl::Status CheckKeys() const;
  void PrepareKeys();
  /// Whether the row with this key is in a range.
  bool InRanges(std::string_view key) const;
  void Add(const ScanTotals& totals, const PieceClaims& claims);

  const Options options_;
  PieceQueue& queue_;
  const RecordSelect select_;
  const txn::RecordLayout layout_;
  std::vector<std::pair<std::string_view, std::string_view>> ranges_;  // disjoint, ascending
  absl::flat_hash_set<std::string_view> hidden_;

  mutable Mutex mutex_;
  ScanTotals totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
