#include "session/record_rows.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/status_macros.h"
#include "execution/local_stage.h"

namespace nam::session {
namespace {

bool InRanges(const std::vector<sql::KeyRange>& ranges, std::span<const std::byte> bytes) {
  const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // The last range that begins at or before the key.
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), key,
                                      [](std::string_view k, const sql::KeyRange& r) { return k < r.low; });
  if (after == ranges.begin()) return false;
  const sql::KeyRange& range = *std::prev(after);
  return range.high.empty() || key < range.high;
}

/// Passes rows of a table to a query's stage in batches: a transaction returns them one by one.
class RowBatch {
 public:
  static constexpr uint64_t kBytesMax = 4 << 20;
  /// `rows_wanted`: the stage sees so many before more are searched for.
  RowBatch(execution::LocalStage& stage, uint32_t pipeline, uint32_t row_bytes, uint64_t rows_wanted)
      : stage_(stage),
        pipeline_(pipeline),
        row_bytes_(row_bytes),
        rows_max_(std::clamp<uint64_t>(std::min<uint64_t>(rows_wanted, kBytesMax / row_bytes), 1,
                                       execution::kChunkRows)) {}

  /// False: the query wants no more.
  absl::StatusOr<bool> Add(std::span<const std::byte> row) {
    bytes_.insert(bytes_.end(), row.begin(), row.begin() + row_bytes_);
    return bytes_.size() < rows_max_ * row_bytes_ ? true : Flush();
  }
  absl::StatusOr<bool> Flush() {
    rows_.clear();
    for (size_t at = 0; at < bytes_.size(); at += row_bytes_) rows_.push_back(bytes_.data() + at);
    absl::StatusOr<bool> more = stage_.AddRecords(pipeline_, rows_);
    bytes_.clear();
    return more;
  }

 private:
  execution::LocalStage& stage_;
  const uint32_t pipeline_;
  const uint32_t row_bytes_;
  const uint64_t rows_max_;
  std::vector<std::byte> bytes_;
  std::vector<const std::byte*> rows_;
};

}  // namespace

absl::Status FollowPath(RecordAccess& access, const std::atomic<bool>& cancelled, const proto::Table& table,
                        const sql::AccessPath& path, const RecordAccess::OnRow& on_row) {
  bool more = true;
  const uint32_t key_bytes = table.record().key_bytes();
  const RecordAccess::OnRow in_ranges = [&](std::span<const std::byte> bytes) -> absl::StatusOr<bool> {
    if (cancelled) return absl::CancelledError("cancelled");
    if (path.scan() && !InRanges(path.ranges, bytes.first(key_bytes))) return true;
    NAM_ASSIGN_OR_RETURN(more, on_row(bytes));
    return more;
  };
  if (path.nothing()) return absl::OkStatus();
  if (!path.keys.empty()) return access.Lookup(table, path.keys, in_ranges);
  if (path.scan()) return access.Scan(table, in_ranges);
  for (const sql::KeyRange& range : path.ranges) {
    if (more) NAM_RETURN_IF_ERROR(access.ScanIndex(table, path.index, range, in_ranges));
  }
  return absl::OkStatus();
}

absl::Status FeedRecords(RecordAccess& access, const std::atomic<bool>& cancelled,
                         const optimizer::TransactionScan& scan, const proto::Table& table,
                         execution::LocalStage& stage) {
  if (scan.rows_wanted == 0) return absl::OkStatus();
  RowBatch batch(stage, scan.pipeline, scan.layout->row_bytes(),
                 scan.rows_wanted > 0 ? static_cast<uint64_t>(scan.rows_wanted) : execution::kChunkRows);
  NAM_RETURN_IF_ERROR(FollowPath(access, cancelled, table, scan.path,
                                 [&](std::span<const std::byte> row) { return batch.Add(row); }));
  return batch.Flush().status();
}

absl::StatusOr<bool> HoldsAll(const std::vector<const plan::Expr*>& conditions, const plan::Resolver& row) {
  for (const plan::Expr* condition : conditions) {
    NAM_ASSIGN_OR_RETURN(const Value holds, plan::Evaluate(*condition, row));
    if (holds.null || holds.number == 0) return false;
  }
  return true;
}

}  // namespace nam::session
