#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "txn/rsi/transaction.h"

namespace nam::txn {

absl::Status RsiSession::Scan(TableHandle handle, const RowVisitor& visit) {
  NAM_RETURN_IF_ERROR(CheckActive());
  if (handle.value >= tables_open_.size()) return NotOpen(handle);
  bool more = true;
  if (absl::Status status = ScanTable(handle.value, visit, more); !status.ok()) return End(status);
  for (size_t i = 0; more && i < writes_.size(); ++i) {
    const PendingWrite& write = writes_[i];
    if (write.table != handle.value || write.kind != PendingWrite::Kind::kInsert) continue;
    more = visit({write.row, table(handle.value).geometry().row_bytes});
  }
  return absl::OkStatus();
}

absl::Status RsiSession::ScanTable(uint32_t number, const RowVisitor& visit, bool& more) {
  RecordTable& from = table(number);
  // Others may have added extents that hold what the snapshot sees.
  NAM_RETURN_IF_ERROR(from.space().FindNew());
  const uint64_t window = std::clamp<uint64_t>(
      batch_.scratch_at_hand() / 2 / RecordBlocks::ScratchOf(from.geometry()), 1, kChunkRecords);
  NAM_RETURN_IF_ERROR(CheckScratch(SnapshotScan::ScratchOf(from.layout(), window)));
  const size_t kept = batch_.scratch_used();
  SnapshotScan scan(from.blocks(), tables_.fabric().clock(), {.at = ReadingAt(snapshot_), .window = window});
  for (size_t extent = 0; more && extent < from.space().extents(); ++extent) {
    NAM_RETURN_IF_ERROR(scan.Start({.extent = extent, .chunks = from.layout().chunks}));
    while (more) {
      NAM_ASSIGN_OR_RETURN(const std::span<const std::byte* const> rows, scan.Next());
      if (rows.empty()) break;
      for (const std::byte* row : rows) more = more && VisitStored(number, row, visit);
    }
  }
  batch_.Reset(kept);  // a transaction may scan as often as it likes
  return absl::OkStatus();
}

// As the transaction's own writes have left it.
bool RsiSession::VisitStored(uint32_t number, const std::byte* stored, const RowVisitor& visit) {
  RecordTable& from = table(number);
  std::span<const std::byte> row(stored, from.geometry().row_bytes);
  if (!writes_.empty()) {
    const std::span<const std::byte> key = row.first(from.description().key_bytes);
    const PendingWrite* const own = writes_.Find(number, from.HashOf(key), key);
    using Kind = PendingWrite::Kind;
    if (own != nullptr && (own->kind == Kind::kInsert || own->kind == Kind::kDelete)) return true;
    if (own != nullptr) row = {own->row, row.size()};
  }
  return visit(row);
}

absl::Status RsiSession::VisitWrites(TableHandle handle, const WriteVisitor& visit) {
  NAM_RETURN_IF_ERROR(CheckActive());
  if (handle.value >= tables_open_.size()) return NotOpen(handle);
  const RecordTable& of = table(handle.value);
  for (const PendingWrite& write : writes_) {
    if (write.table != handle.value || write.only_locks()) continue;
    const std::span<const std::byte> row(write.row, of.geometry().row_bytes);
    const bool deleted = write.kind == PendingWrite::Kind::kDelete;
    if (!visit(row.first(of.description().key_bytes), deleted ? std::span<const std::byte>() : row)) break;
  }
  return absl::OkStatus();
}

absl::Status RsiSession::ReadBlocks(RecordTable& from, std::span<BlockRead> blocks, uint64_t snapshot) {
  return ReadVersions(from.blocks(), blocks, ReadingAt(snapshot), tables_.fabric().clock());
}

}  // namespace nam::txn
