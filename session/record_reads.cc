#include "session/record_reads.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "sql/record_access.h"
#include "storage/record_block.h"
#include "txn/record_layout.h"
#include "txn/session.h"
#include "types/wire.h"

namespace nam::session {
namespace {

/// More rows than this do not travel with the plan: compute servers read the table instead.
constexpr size_t kFoundRowsMax = 10'000;
constexpr size_t kFoundBytesMax = size_t{1} << 20;
/// The number of values of a column that is no key is unknown: assumes so many rows for each.
constexpr uint64_t kRowsOfAValue = 10;
/// Fewer are not worth a claim: 4,096 rows.
constexpr uint64_t kChunksOfAPieceMin = 16;

std::string RowText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status Dropped(const std::string& table) {
  return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                          absl::StrCat("table ", table, " was dropped meanwhile"));
}

/// The greatest key of `bytes` bytes below a bound, which may be shorter; nullopt if there is none.
std::optional<std::string> LastBelow(std::string bound, uint32_t bytes) {
  bound.resize(bytes, '\0');
  for (size_t i = bound.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(bound[i]);
    bound[i] = static_cast<char>(byte - 1);
    if (byte != 0) return bound;
  }
  return std::nullopt;
}

/// Adds ranges of whole keys with both their ends; none for the whole table.
void AddRanges(const std::vector<sql::KeyRange>& ranges, uint32_t key_bytes, plan::RecordScan& scan) {
  for (const sql::KeyRange& range : ranges) {
    if (range.low.empty() && range.high.empty()) continue;
    std::string low = range.low;
    low.resize(key_bytes, '\0');
    const std::optional<std::string> high =
        range.high.empty() ? std::string(key_bytes, '\xff') : LastBelow(range.high, key_bytes);
    if (!high.has_value()) continue;
    scan.range_low.push_back(std::move(low));
    scan.range_high.push_back(*high);
  }
}

/// Returns whether all rows of the path, which is no scan, were found; else there are too many.
absl::StatusOr<bool> FindRows(const proto::Table& table, const sql::AccessPath& path, RecordAccess& access,
                              const std::atomic<bool>& cancelled, std::vector<std::string>& rows) {
  size_t bytes = 0;
  bool all = true;
  const RecordAccess::OnRow keep = [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
    if (cancelled) return absl::CancelledError("cancelled");
    bytes += row.size();
    all = rows.size() < kFoundRowsMax && bytes <= kFoundBytesMax;
    if (all) rows.push_back(RowText(row));
    return all;
  };
  if (!path.keys.empty()) {
    NAM_RETURN_IF_ERROR(access.Lookup(table, path.keys, keep));
    return all;
  }
  for (const sql::KeyRange& range : path.ranges) {
    if (all) NAM_RETURN_IF_ERROR(access.ScanIndex(table, path.index, range, keep));
  }
  return all;
}

}  // namespace

uint64_t RecordReads::Read::rows() const {
  if (scan.own_rows_only) return scan.own_rows.size();
  return uint64_t{extents} * chunks * txn::kChunkRecords;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> RecordReads::Prepare(
    const std::shared_ptr<const proto::Table>& table, const std::vector<plan::Expr>& conditions) {
  NAM_ASSIGN_OR_RETURN(Read read, Find(*table, conditions));
  reads_.push_back(std::move(read));
  NAM_ASSIGN_OR_RETURN(const RecordAccess::Stored stored, access_.StoredAs(*table));
  auto estimates = std::make_shared<proto::Table>(*stored.table);
  const uint64_t rows = reads_.back().rows();
  estimates->set_rows(rows);
  const auto& key = estimates->record().primary_key();
  for (proto::Column& column : *estimates->mutable_columns()) {
    const bool unique = key.size() == 1 && key[0] == column.name();
    const bool truth = ColumnTypeOf(column.type()).kind == TypeKind::kBool;
    column.set_distinct(truth ? 2 : std::max<uint64_t>(1, unique ? rows : rows / kRowsOfAValue));
    column.set_min(1);  // above the greatest: no statement about ranges
    column.set_max(0);
  }
  return estimates;
}

absl::StatusOr<RecordReads::Read> RecordReads::Find(const proto::Table& table,
                                                    const std::vector<plan::Expr>& conditions) {
  const partitioner::RecordLayout layout(table);
  const sql::AccessPath path =
      sql::ChooseAccessPath(table, layout, conditions, {.snapshot = access_.snapshot()});
  Read read;
  NAM_ASSIGN_OR_RETURN(const RecordAccess::Stored stored, access_.StoredAs(table));
  read.scan.snapshot = stored.snapshot;
  if (!path.scan()) {
    NAM_ASSIGN_OR_RETURN(read.scan.own_rows_only,
                         FindRows(table, path, access_, cancelled_, read.scan.own_rows));
    if (read.scan.own_rows_only) return read;
    read.scan.own_rows.clear();
  } else {
    AddRanges(path.ranges, layout.key_bytes(), read.scan);
  }
  NAM_RETURN_IF_ERROR(access_.VisitWrites(table, [&](std::string_view key, std::string_view row) {
    read.scan.hidden_keys.emplace_back(key);
    if (!row.empty()) read.scan.own_rows.emplace_back(row);
  }));
  // As of now, after the snapshot was taken: all rows that the snapshot sees have their extents by then.
  const auto now = catalog_.GetTable(stored.table->name());
  if (absl::IsNotFound(now.status())) return Dropped(table.name());
  if (!now.ok()) return now.status();
  if ((*now)->allocation() != stored.table->allocation()) return Dropped(table.name());
  if ((*now)->record().closed_by() != 0) {  // the snapshot may already see rows of the load
    return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                            absl::StrCat("table ", table.name(), " is being loaded"));
  }
  const proto::RecordStorage& storage = (*now)->record();
  for (const proto::RecordPart& part : storage.parts()) {
    if (part.kind() == proto::RECORDS) read.extents = static_cast<uint32_t>(part.extents_size());
  }
  const auto geometry = storage::RecordGeometry::Of(storage.row_bytes(), storage.versions());
  read.chunks = static_cast<uint32_t>(txn::RecordLayout::Of(geometry, storage.extent_bytes()).chunks);
  return read;
}

void RecordReads::FillIn(const std::vector<uint32_t>& tables, plan::PhysicalPlan& plan) {
  for (size_t i = 0; i < tables.size(); ++i) read_of_[tables[i]] = i;
  for (plan::Pipeline& pipeline : plan.pipelines) {
    auto* const scan = std::get_if<plan::RecordScan>(&pipeline.source);
    const auto read = scan == nullptr ? read_of_.end() : read_of_.find(scan->table);
    if (read == read_of_.end()) continue;  // the session scans it
    plan::RecordScan filled = reads_[read->second].scan;
    static_cast<plan::TableScan&>(filled) = std::move(*scan);
    *scan = std::move(filled);
  }
}

std::vector<partitioner::Piece> RecordReads::PiecesOf(uint32_t table, uint64_t pieces_wanted) const {
  const Read& read = reads_[read_of_.at(table)];
  const uint64_t chunks = uint64_t{read.extents} * read.chunks;
  const uint64_t run = std::max(kChunksOfAPieceMin, chunks / std::max<uint64_t>(1, pieces_wanted));
  return partitioner::RecordPieces(read.extents, read.chunks,
                                   static_cast<uint32_t>(std::min<uint64_t>(run, UINT32_MAX)),
                                   static_cast<uint32_t>(read.scan.own_rows.size()));
}

}  // namespace nam::session
