#include "txn/rsi/row_scanner.h"

#include <algorithm>
#include <vector>

#include "base/status_macros.h"

namespace nam::txn {

absl::Status RowScanner::Scan(uint32_t number, const RowVisitor& visit) {
  bool more = true;
  NAM_RETURN_IF_ERROR(ScanStored(number, visit, more));
  for (size_t i = 0; more && i < writes_.size(); ++i) {
    const PendingWrite& write = writes_[i];
    if (write.table != number || write.kind != PendingWrite::Kind::kInsert) continue;
    more = visit({write.row, table(number).geometry().row_bytes});
  }
  return absl::OkStatus();
}

absl::Status RowScanner::ScanStored(uint32_t number, const RowVisitor& visit, bool& more) {
  RecordTable& from = table(number);
  // Others may have added extents with rows that the snapshot sees.
  NAM_RETURN_IF_ERROR(from.space().FindNew());
  const uint64_t window = std::clamp<uint64_t>(
      batch_.scratch_at_hand() / 2 / RecordBlocks::ScratchOf(from.geometry()), 1, kChunkRecords);
  NAM_RETURN_IF_ERROR(core_.CheckScratch(SnapshotScan::ScratchOf(from.layout(), window)));
  const size_t kept = batch_.scratch_used();
  SnapshotScan scan(from.blocks(), core_.tables.fabric().clock(),
                    {.at = reader_.At(transaction_.snapshot), .window = window});
  for (size_t extent = 0; more && extent < from.space().extents(); ++extent) {
    NAM_RETURN_IF_ERROR(scan.Start({.extent = extent, .chunks = from.layout().chunks}));
    while (more) {
      NAM_ASSIGN_OR_RETURN(const std::span<const std::byte* const> rows, scan.Next());
      if (rows.empty()) break;
      for (const std::byte* row : rows) more = more && VisitStored(number, row, visit);
    }
  }
  batch_.Reset(kept);  // a transaction may scan without limit
  return absl::OkStatus();
}

// Visits the row as the transaction's own writes have left it.
bool RowScanner::VisitStored(uint32_t number, const std::byte* stored, const RowVisitor& visit) {
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

}  // namespace nam::txn
