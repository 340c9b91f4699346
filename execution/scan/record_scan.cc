#include "execution/scan/record_scan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/scan/record_scan_task.h"
#include "partitioner/pieces.h"
#include "plan/table_schema.h"
#include "proto/compute.pb.h"
#include "txn/snapshot_scan.h"

namespace nam::execution {
namespace {

static_assert(partitioner::kRecordsOfChunk == txn::kChunkRecords);

bool AllHave(const std::vector<std::string>& texts, uint32_t bytes) {
  return std::all_of(texts.begin(), texts.end(),
                     [bytes](const std::string& text) { return text.size() == bytes; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordScan>> RecordScan::Make(Options options, PieceQueue& queue) {
  if (!options.table->has_record()) return BadRecordScan("a scan for records of a table without them");
  NAM_ASSIGN_OR_RETURN(RecordSelect select, RecordSelect::Make(*options.table, std::move(options.select)));
  auto scan = std::unique_ptr<RecordScan>(new RecordScan(std::move(options), std::move(select), queue));
  NAM_RETURN_IF_ERROR(scan->CheckTable());
  NAM_RETURN_IF_ERROR(scan->CheckPieces());
  NAM_RETURN_IF_ERROR(scan->CheckKeys());
  scan->PrepareKeys();
  return scan;
}

RecordScan::RecordScan(Options options, RecordSelect select, PieceQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      select_(std::move(select)),
      layout_(txn::LayoutOf(options_.records)) {}
RecordScan::~RecordScan() = default;

absl::Status RecordScan::CheckTable() const {
  if (options_.records.allocation.value() != options_.table->allocation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", options_.table->name(), " is not the one that the plan was made for"));
  }
  if (options_.records.row_bytes == select_.row().row_bytes() &&
      options_.records.key_bytes == select_.row().key_bytes())
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("table ", options_.table->name(), " has rows that are not as its columns say"));
}

absl::Status RecordScan::CheckPieces() const {
  for (const partitioner::Piece& piece : queue_.pieces()) {
    const uint64_t end = uint64_t{piece.first_block} + piece.blocks;
    const uint64_t most = piece.partition == partitioner::kOwnRows ? options_.own_rows.size()
                          : options_.own_rows_only                 ? 0
                                                                   : layout_.chunks;
    if (end > most) return BadRecordScan("no such chunks");
  }
  return absl::OkStatus();
}

absl::Status RecordScan::CheckKeys() const {
  if (options_.range_low.size() != options_.range_high.size()) return BadRecordScan("a range with one end");
  const bool keys = AllHave(options_.range_low, select_.row().key_bytes()) &&
                    AllHave(options_.range_high, select_.row().key_bytes()) &&
                    AllHave(options_.hidden_keys, select_.row().key_bytes());
  if (!keys) return BadRecordScan("a key of another size than the table's");
  return AllHave(options_.own_rows, select_.row().row_bytes())
             ? absl::OkStatus()
             : BadRecordScan("a row of another size than the table's");
}

void RecordScan::PrepareKeys() {
  for (const std::string& key : options_.hidden_keys) hidden_.insert(key);
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (size_t i = 0; i < options_.range_low.size(); ++i)
    all.emplace_back(options_.range_low[i], options_.range_high[i]);
  std::sort(all.begin(), all.end());
  for (const auto& [low, high] : all) {
    if (!ranges_.empty() && low <= ranges_.back().second) {
      ranges_.back().second = std::max(ranges_.back().second, high);
    } else {
      ranges_.emplace_back(low, high);
    }
  }
}

bool RecordScan::InRanges(std::string_view key) const {
  if (ranges_.empty()) return true;
  // The last range that begins at or before the key.
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), key,
                                      [](std::string_view k, const auto& range) { return k < range.first; });
  return after != ranges_.begin() && key <= std::prev(after)->second;
}

std::unique_ptr<SourceTask> RecordScan::NewTask(TaskContext& context) {
  return std::make_unique<RecordScanTask>(*this, context);
}

ScanTotals RecordScan::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

void RecordScan::Count(proto::PipelineCounters& out) const {
  totals().Count(out);
  out.set_table(options_.table->name());
  out.set_by_row_nodes(out.by_row_nodes() + select_.by_row_nodes());
}

void RecordScan::Add(const ScanTotals& totals, const PieceClaims& claims) {
  const MutexLock lock(mutex_);
  totals_.Add(totals, &claims);
}

}  // namespace nam::execution
