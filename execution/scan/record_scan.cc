#include "execution/scan/record_scan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/scan/record_scan_task.h"
#include "partitioner/pieces.h"
#include "plan/table_schema.h"
#include "txn/snapshot_scan.h"

namespace nam::execution {
namespace {

static_assert(partitioner::kRecordsOfChunk == txn::kChunkRecords);

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("not a plan: ", what));
}

bool AllHave(const std::vector<std::string>& texts, uint32_t bytes) {
  return std::all_of(texts.begin(), texts.end(),
                     [bytes](const std::string& text) { return text.size() == bytes; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordScan>> RecordScan::Make(Options options, PieceQueue& queue) {
  if (!options.table->has_record()) return Bad("a scan for records of a table without them");
  auto scan = std::unique_ptr<RecordScan>(new RecordScan(std::move(options), queue));
  NAM_RETURN_IF_ERROR(scan->CheckTable());
  NAM_RETURN_IF_ERROR(scan->CheckColumns());
  NAM_RETURN_IF_ERROR(scan->CheckPieces());
  NAM_RETURN_IF_ERROR(scan->CheckKeys());
  NAM_RETURN_IF_ERROR(scan->PrepareFilters());
  scan->PrepareKeys();
  return scan;
}

RecordScan::RecordScan(Options options, PieceQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      row_(*options_.table),
      layout_(txn::LayoutOf(options_.records)) {}
RecordScan::~RecordScan() = default;

absl::Status RecordScan::CheckTable() const {
  if (options_.records.allocation.value() != options_.table->allocation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", options_.table->name(), " is not the one that the plan was made for"));
  }
  if (options_.records.row_bytes == row_.row_bytes() && options_.records.key_bytes == row_.key_bytes())
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("table ", options_.table->name(), " has rows that are not as its columns say"));
}

absl::Status RecordScan::CheckColumns() const {
  if (options_.schema.size() != options_.columns.size()) return Bad("columns without types");
  uint32_t before = 0;
  for (size_t i = 0; i < options_.columns.size(); ++i) {
    const uint32_t column = options_.columns[i];
    if (column >= static_cast<uint32_t>(options_.table->columns_size()) || column < before)
      return Bad("it reads columns that do not exist");
    before = column + 1;
    NAM_ASSIGN_OR_RETURN(const plan::Slot slot, plan::SlotOfColumn(*options_.table, column));
    if (slot != options_.schema[i]) return Bad("a scan of columns that hold something else");
  }
  const bool all_read = std::all_of(options_.outputs.begin(), options_.outputs.end(),
                                    [&](uint32_t slot) { return slot < options_.columns.size(); });
  return all_read ? absl::OkStatus() : Bad("it uses a column that it does not read");
}

absl::Status RecordScan::CheckPieces() const {
  for (const partitioner::Piece& piece : queue_.pieces()) {
    const uint64_t end = uint64_t{piece.first_block} + piece.blocks;
    const uint64_t most =
        piece.partition == partitioner::kOwnRows ? options_.own_rows.size() : layout_.chunks;
    if (end > most) return Bad("no such chunks");
  }
  return absl::OkStatus();
}

absl::Status RecordScan::CheckKeys() const {
  if (options_.range_low.size() != options_.range_high.size()) return Bad("a range with one end");
  const bool keys = AllHave(options_.range_low, row_.key_bytes()) &&
                    AllHave(options_.range_high, row_.key_bytes()) &&
                    AllHave(options_.hidden_keys, row_.key_bytes());
  if (!keys) return Bad("a key of another size than the table's");
  return AllHave(options_.own_rows, row_.row_bytes()) ? absl::OkStatus()
                                                      : Bad("a row of another size than the table's");
}

absl::Status RecordScan::PrepareFilters() {
  std::vector<bool> seen(options_.columns.size());
  const auto add = [&](uint32_t slot, std::vector<uint32_t>& to) {
    if (!seen[slot]) to.push_back(slot);
    seen[slot] = true;
  };
  for (const plan::Expr& filter : options_.filters) {
    for (const plan::ColumnRef ref : plan::ColumnsOf(filter)) {
      if (static_cast<size_t>(ref.column) >= seen.size())
        return Bad("it uses a column that it does not read");
      add(static_cast<uint32_t>(ref.column), filtered_);
    }
  }
  for (const uint32_t slot : options_.outputs) add(slot, others_);
  if (options_.filters.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(program_, Program::Compile(options_.filters, options_.schema));
  return absl::OkStatus();
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
  // The last that begins at or before the key.
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), key,
                                      [](std::string_view k, const auto& range) { return k < range.first; });
  return after != ranges_.begin() && key <= std::prev(after)->second;
}

std::unique_ptr<SourceTask> RecordScan::NewTask(TaskContext& context) {
  return std::make_unique<RecordScanTask>(*this, context);
}

ScanTotals RecordScan::totals() const {
  std::scoped_lock lock(mutex_);
  return totals_;
}

void RecordScan::Add(const ScanTotals& totals, const PieceClaims& claims) {
  std::scoped_lock lock(mutex_);
  totals_.Add(totals, &claims);
}

}  // namespace nam::execution
