#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "txn/rsi_transaction.h"

namespace nam::txn {
namespace {

using storage::VersionChoice;
using Outcome = storage::VersionChoice::Outcome;

constexpr uint64_t kWindowMax = kChunkRecords;
constexpr int kRoundsMax = 10'000;
constexpr int64_t kPauseUs = 10;

}  // namespace

// Chunk by chunk, many blocks at once, into one window of scratch memory.
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
  const uint64_t read_bytes = from.geometry().block_bytes() + 192;
  const uint64_t window = std::clamp<uint64_t>(batch_.scratch_left() / 2 / read_bytes, 1, kWindowMax);
  NAM_RETURN_IF_ERROR(CheckScratch(window * read_bytes));
  std::vector<BlockRead> blocks;
  const size_t kept = batch_.scratch_used();
  for (size_t extent = 0; more && extent < from.space().extents(); ++extent) {
    blocks.assign(window, {});
    NAM_RETURN_IF_ERROR(CheckScratch(from.layout().chunks * 8));
    NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> words, from.allocator().ReadWords(batch_, extent));
    for (uint64_t i = 0; more && i < words.size(); ++i) {
      if (words[i] == 0) continue;  // nobody ever had it
      const uint64_t first = (extent * from.layout().chunks + i) * kChunkRecords;
      for (uint64_t at = 0; more && at < kChunkRecords; at += window) {
        const uint64_t count = std::min(window, kChunkRecords - at);
        for (uint64_t j = 0; j < count; ++j) blocks[j].record = first + at + j;
        NAM_RETURN_IF_ERROR(ScanBlocks(number, std::span(blocks).first(count), visit, more));
      }
    }
    batch_.Reset(kept);  // a transaction may scan as often as it likes
  }
  return absl::OkStatus();
}

absl::Status RsiSession::ScanBlocks(uint32_t number, std::span<BlockRead> blocks, const RowVisitor& visit,
                                    bool& more) {
  RecordTable& from = table(number);
  NAM_RETURN_IF_ERROR(ReadBlocks(from, blocks, snapshot_));
  for (const BlockRead& block : blocks) {
    const VersionChoice choice = Choose(from, block);
    if (choice.outcome != Outcome::kVersion || choice.version.deleted()) continue;
    std::span<const std::byte> row(block.block + from.geometry().slot_offset(choice.slot),
                                   from.geometry().row_bytes);
    if (!writes_.empty()) {
      const std::span<const std::byte> key = row.first(from.description().key_bytes);
      const PendingWrite* const own = WriteOf(number, from.HashOf(key), key);
      if (own != nullptr && own->kind != PendingWrite::Kind::kUpdate) continue;
      if (own != nullptr) row = {own->row, row.size()};
    }
    more = more && visit(row);
  }
  return absl::OkStatus();
}

// Until none of them has moved while it was READ.
absl::Status RsiSession::ReadBlocks(RecordTable& from, std::span<BlockRead> blocks, uint64_t snapshot) {
  Clock& clock = tables_.fabric().clock();
  std::vector<BlockRead*> waiting, again;
  for (BlockRead& block : blocks) waiting.push_back(&block);
  for (int round = 0; !waiting.empty(); ++round) {
    if (round == kRoundsMax)
      return AbortStatus(AbortReason::kSnapshotTooOld, "a row that never stands still");
    if (round > 8) clock.SleepUntil(clock.After(kPauseUs));
    for (BlockRead* block : waiting) {
      NAM_RETURN_IF_ERROR(block->block == nullptr ? from.AddRead(*block) : from.AddReadAgain(*block));
    }
    for (const BlockRead* block : waiting) from.FetchWords(*block);
    NAM_RETURN_IF_ERROR(batch_.Execute());
    for (BlockRead* block : waiting) from.Take(*block);
    NAM_RETURN_IF_ERROR(ReadVisibleSlots(from, waiting, snapshot));
    again.clear();
    for (BlockRead* block : waiting) {
      const VersionChoice choice = Choose(from, *block, snapshot);
      if (choice.outcome == Outcome::kTooOld) {
        return AbortStatus(AbortReason::kSnapshotTooOld, "a row of " + from.description().name);
      }
      if (choice.outcome == Outcome::kMoved) again.push_back(block);
    }
    std::swap(waiting, again);
  }
  return absl::OkStatus();
}

absl::Status RsiSession::ReadVisibleSlots(RecordTable& from, std::span<BlockRead* const> blocks,
                                          uint64_t snapshot) {
  bool any = false;
  for (BlockRead* block : blocks) {
    if (from.IsWhole(*block)) continue;
    const VersionChoice choice = Choose(from, *block, snapshot);
    if (choice.outcome != Outcome::kVersion) continue;
    NAM_RETURN_IF_ERROR(from.AddReadSlot(*block, choice.slot));
    any = true;
  }
  if (!any) return absl::OkStatus();
  for (const BlockRead* block : blocks) from.FetchSlot(*block);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (BlockRead* block : blocks) from.TakeSlot(*block);
  return absl::OkStatus();
}

}  // namespace nam::txn
