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
#include "session/record_rows.h"
#include "sql/record_access.h"
#include "storage/record_block.h"
#include "txn/record_layout.h"
#include "txn/session.h"
#include "types/wire.h"

namespace nam::session {
namespace {

/// If an index leads to more rows than this, compute servers read the table instead.
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

/// Expected behind ranges of an index. Whole keys, or their beginnings, have a few rows each; of other ranges
/// nothing is known.
uint64_t RowsBehind(const sql::AccessPath& path, uint64_t most) {
  uint64_t rows = 0;
  for (const sql::KeyRange& range : path.ranges) {
    const bool prefix = !range.low.empty() && range.high == partitioner::SuccessorOfPrefix(range.low);
    rows += prefix ? kRowsOfAValue : most;
  }
  return std::min(rows, most);
}

uint32_t ExtentsOf(const proto::RecordStorage& storage) {
  uint32_t extents = 0;
  for (const proto::RecordPart& part : storage.parts()) {
    if (part.kind() == proto::RECORDS) extents = static_cast<uint32_t>(part.extents_size());
  }
  return extents;
}

}  // namespace

uint64_t RecordReads::Read::rows_expected() const {
  if (!path.keys.empty() || path.nothing()) return path.keys.size();
  const uint64_t most = uint64_t{extents} * chunks * txn::kChunkRecords;
  return path.scan() ? most : RowsBehind(path, most);
}

absl::StatusOr<std::shared_ptr<const proto::Table>> RecordReads::Prepare(
    const std::shared_ptr<const proto::Table>& table, const std::vector<plan::Expr>& conditions) {
  const partitioner::RecordLayout layout(*table);
  Read read{.table = table};
  read.path = sql::ChooseAccessPath(*table, layout, conditions, {.snapshot = access_.snapshot()});
  read.path.filter.clear();
  NAM_ASSIGN_OR_RETURN(const RecordAccess::Stored stored, access_.StoredAs(*table));
  read.scan.snapshot = stored.snapshot;
  read.stored = stored.table->name();
  read.allocation = stored.table->allocation();
  if (read.path.scan()) AddRanges(read.path.ranges, layout.key_bytes(), read.scan);
  const proto::RecordStorage& storage = stored.table->record();
  read.extents = ExtentsOf(storage);
  const auto geometry = storage::RecordGeometry::Of(storage.row_bytes(), storage.versions());
  read.chunks = static_cast<uint32_t>(txn::RecordLayout::Of(geometry, storage.extent_bytes()).chunks);
  auto estimates = std::make_shared<proto::Table>(*stored.table);
  const uint64_t rows = read.rows_expected();
  estimates->set_rows(rows);
  const auto& key = estimates->record().primary_key();
  for (proto::Column& column : *estimates->mutable_columns()) {
    const bool unique = key.size() == 1 && key[0] == column.name();
    const bool truth = ColumnTypeOf(column.type()).kind == TypeKind::kBool;
    column.set_distinct(truth ? 2 : std::max<uint64_t>(1, unique ? rows : rows / kRowsOfAValue));
    column.set_min(1);  // above the greatest: no statement about ranges
    column.set_max(0);
  }
  reads_.push_back(std::move(read));
  return estimates;
}

void RecordReads::FillIn(const std::vector<uint32_t>& tables, plan::PhysicalPlan& plan) {
  for (size_t i = 0; i < tables.size(); ++i) read_of_[tables[i]] = i;
  for (plan::Pipeline& pipeline : plan.pipelines) {
    const Read* const read = ReadOf(pipeline);
    if (read == nullptr) continue;  // the session scans it
    auto& scan = std::get<plan::RecordScan>(pipeline.source);
    plan::RecordScan filled = read->scan;
    static_cast<plan::TableScan&>(filled) = std::move(scan);
    scan = std::move(filled);
  }
}

const RecordReads::Read* RecordReads::ReadOf(const plan::Pipeline& pipeline) const {
  const auto* const scan = std::get_if<plan::RecordScan>(&pipeline.source);
  const auto read = scan == nullptr ? read_of_.end() : read_of_.find(scan->table);
  return read == read_of_.end() ? nullptr : &reads_[read->second];
}

std::vector<optimizer::TransactionScan> RecordReads::Scans(const plan::PhysicalPlan& plan) const {
  std::vector<optimizer::TransactionScan> scans;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const Read* const read = ReadOf(plan.pipelines[p]);
    if (read == nullptr) continue;
    optimizer::TransactionScan& scan = scans.emplace_back();
    scan.pipeline = p;
    scan.table = std::get<plan::RecordScan>(plan.pipelines[p].source).table;
    scan.path = read->path;
  }
  return scans;
}

bool RecordReads::AreReadBy(const plan::PhysicalPlan& plan, uint32_t stage) const {
  return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [&](const plan::Pipeline& pipeline) {
    return pipeline.stage == stage && ReadOf(pipeline) != nullptr;
  });
}

absl::StatusOr<std::vector<proto::RecordInput>> RecordReads::Fetch(const plan::PhysicalPlan& plan,
                                                                   uint32_t stage) {
  std::vector<proto::RecordInput> inputs;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const Read* const read = ReadOf(plan.pipelines[p]);
    if (read == nullptr || plan.pipelines[p].stage != stage) continue;
    proto::RecordInput input;
    input.set_pipeline(p);
    NAM_RETURN_IF_ERROR(FetchOne(reads_[static_cast<size_t>(read - reads_.data())], input));
    if (input.rows_only() || !input.hidden().few().empty()) inputs.push_back(std::move(input));
  }
  return inputs;
}

absl::Status RecordReads::FetchOne(Read& read, proto::RecordInput& input) {
  read.fetched = true;
  read.rows = 0;
  read.rows_only = false;
  if (!read.path.scan()) {
    std::vector<std::string> rows;
    NAM_ASSIGN_OR_RETURN(read.rows_only, FindRows(read, rows));
    if (read.rows_only) {
      input.set_rows_only(true);
      read.rows = rows.size();
      return scratch_.LeaveRows(
          read.table->record().row_bytes(),
          [&](const QueryScratch::AddRow& add) -> absl::Status {
            for (const std::string& row : rows) NAM_RETURN_IF_ERROR(add(row));
            return absl::OkStatus();
          },
          *input.mutable_rows());
    }
  }
  NAM_RETURN_IF_ERROR(LeaveWrites(read, input));
  return FindExtents(read);
}

absl::StatusOr<bool> RecordReads::FindRows(const Read& read, std::vector<std::string>& rows) {
  size_t bytes = 0;
  bool all = true;
  const RecordAccess::OnRow keep = [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
    bytes += row.size();
    all = rows.size() < kFoundRowsMax && bytes <= kFoundBytesMax;
    if (all) rows.push_back(RowText(row.first(read.table->record().row_bytes())));
    return all;
  };
  NAM_RETURN_IF_ERROR(FollowPath(access_, cancelled_, *read.table, read.path, keep));
  return all;
}

absl::Status RecordReads::LeaveWrites(Read& read, proto::RecordInput& input) {
  const proto::RecordStorage& record = read.table->record();
  const auto visit = [&](bool keys) {
    return [this, keys, &read](const QueryScratch::AddRow& add) -> absl::Status {
      absl::Status added;
      NAM_RETURN_IF_ERROR(access_.VisitWrites(*read.table, [&](std::string_view key, std::string_view row) {
        if (added.ok() && cancelled_) added = absl::CancelledError("cancelled");
        if (added.ok() && (keys || !row.empty())) added = add(keys ? key : row);
      }));
      return added;
    };
  };
  NAM_RETURN_IF_ERROR(scratch_.LeaveRows(record.row_bytes(), visit(/*keys=*/false), *input.mutable_rows()));
  read.rows = input.rows().few().size() / record.row_bytes() + input.rows().more().rows();
  return scratch_.LeaveRows(record.key_bytes(), visit(/*keys=*/true), *input.mutable_hidden());
}

absl::Status RecordReads::FindExtents(Read& read) {
  const auto now = catalog_.GetTable(read.stored);
  if (absl::IsNotFound(now.status())) return Dropped(read.table->name());
  if (!now.ok()) return now.status();
  if ((*now)->allocation() != read.allocation) return Dropped(read.table->name());
  if ((*now)->record().closed_by() != 0) {  // the snapshot may already see rows of the load
    return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                            absl::StrCat("table ", read.table->name(), " is being loaded"));
  }
  read.extents = ExtentsOf((*now)->record());
  return absl::OkStatus();
}

std::vector<partitioner::Piece> RecordReads::PiecesOf(uint32_t table, uint64_t pieces_wanted) const {
  const Read& read = reads_[read_of_.at(table)];
  const bool rows_only = read.fetched ? read.rows_only : !read.path.scan();
  const auto rows = static_cast<uint32_t>(read.fetched ? read.rows : rows_only ? read.rows_expected() : 0);
  if (rows_only) return partitioner::RecordPieces(0, 0, 0, rows);
  const uint64_t chunks = uint64_t{read.extents} * read.chunks;
  const uint64_t run = std::max(kChunksOfAPieceMin, chunks / std::max<uint64_t>(1, pieces_wanted));
  return partitioner::RecordPieces(read.extents, read.chunks,
                                   static_cast<uint32_t>(std::min<uint64_t>(run, UINT32_MAX)), rows);
}

}  // namespace nam::session
