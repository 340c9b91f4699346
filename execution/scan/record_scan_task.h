#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "execution/scan/record_scan.h"
#include "txn/snapshot_scan.h"

namespace nam::execution {

/// One thread's share of a scan of records: its reader, its columns and its current piece. Always fills the
/// same chunk.
class RecordScanTask final : public SourceTask {
 public:
  RecordScanTask(RecordScan& scan, TaskContext& context);
  ~RecordScanTask() override;

  Step Next(TaskContext& context, Chunk& out) override;
  void Stop() override { End(); }

 private:
  using Rows = std::span<const std::byte* const>;

  absl::Status Begin(TaskContext& context);
  /// Reports the work done and gives the channel back.
  void End();
  /// The next rows of the piece, or the first of the next piece. kDone: there are none.
  Step NextRows(TaskContext& context, Rows& rows);
  /// kHaveMore: a piece was begun.
  Step NextPiece(TaskContext& context);
  absl::StatusOr<Rows> StoredRows(TaskContext& context);
  Rows OwnRows(TaskContext& context);
  /// Drops rows that are hidden or in no range.
  Rows Wanted(Rows rows, bool stored);

  RecordScan& scan_;
  PieceClaims claims_;
  Clock& clock_;
  RecordSelect::Task select_;
  std::unique_ptr<txn::RecordReader> reader_;  // made with the first piece of chunks
  bool begun_ = false, ended_ = false;

  Chunk* out_ = nullptr;
  enum class RowSource : uint8_t { kNone, kChunks, kOwnRows };
  RowSource source_ = RowSource::kNone;
  uint64_t own_next_ = 0, own_end_ = 0;   // the rest of the piece's own rows
  std::vector<const std::byte*> wanted_;  // rows of the chunk, unless all that were read

  ScanTotals totals_;
  int64_t started_ns_ = 0;
};

}  // namespace nam::execution
