#include "txn/rsi/reclaimer.h"

#include <algorithm>
#include <new>

#include "base/status_macros.h"
#include "storage/record_block.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;

constexpr size_t kPortionMax = 64;
constexpr size_t kRowsBytesMax = 256 << 10;  // of scratch memory

/// Records that one round trip covers.
size_t PortionOf(const RecordTable& table) {
  if (table.indexes().empty()) return kPortionMax;
  return std::clamp<size_t>(kRowsBytesMax / table.geometry().row_bytes, 1, kPortionMax);
}

}  // namespace

/// A deleted row that every snapshot sees as deleted.
struct Reclaimer::DeadRow {
  uint64_t record = 0;
  RecordHeader header;
  uint32_t slot = 0;  // the deletion's, with the row's key
  uint64_t hash = 0;
  const std::byte* row = nullptr;  // scratch; its key alone if the table has no indexes
};

absl::StatusOr<uint32_t> Reclaimer::Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                            std::vector<uint64_t>& freed) {
  held_by_ = 0;
  uint32_t unripe = 0;
  if (records.empty()) return unripe;
  NAM_ASSIGN_OR_RETURN(const Timestamps::Horizon horizon, timestamps_.RaiseHorizon(batch_));
  const size_t portion = PortionOf(table);
  for (; !records.empty(); records = records.subspan(std::min(portion, records.size()))) {
    const size_t kept = batch_.scratch_used();
    NAM_ASSIGN_OR_RETURN(
        std::vector<DeadRow> dead_rows,
        FindDeadRows(table, records.first(std::min(portion, records.size())), horizon.value, unripe));
    if (!dead_rows.empty()) {
      NAM_RETURN_IF_ERROR(HashKeys(table, dead_rows));
      NAM_RETURN_IF_ERROR(Announce(table, dead_rows));
      NAM_RETURN_IF_ERROR(Lock(table, dead_rows));
      NAM_RETURN_IF_ERROR(Free(table, dead_rows));
      for (const DeadRow& dead_row : dead_rows) {
        freed.push_back(dead_row.record);
        if (!table.indexes().empty())
          on_freed_(table, dead_row.record, dead_row.row, dead_row.header.timestamp());
      }
    }
    batch_.Reset(kept);
  }
  if (unripe > 0) held_by_ = horizon.held_by;
  return unripe;
}

// The words of a block need not be of one moment: a newest version stays as it is, and the lock fails if it
// is not the newest any more.
absl::StatusOr<std::vector<Reclaimer::DeadRow>> Reclaimer::FindDeadRows(RecordTable& table,
                                                                        std::span<const uint64_t> records,
                                                                        uint64_t horizon, uint32_t& unripe) {
  const storage::RecordGeometry& geometry = table.geometry();
  std::vector<const uint64_t*> blocks;
  for (const uint64_t record : records) {
    auto* const words = reinterpret_cast<uint64_t*>(batch_.Scratch(8 + 8 * geometry.slots));
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table.Block(record));
    batch_.Read(block, reinterpret_cast<std::byte*>(words), 8);
    for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
      storage::Channel::Target word = block;
      word.address.offset += geometry.word_offset(slot);
      batch_.Read(word, reinterpret_cast<std::byte*>(words + 1 + slot), 8);
    }
    blocks.push_back(words);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  std::vector<DeadRow> dead_rows;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordHeader header(blocks[i][0]);
    if (header.locked() || header.timestamp() == 0) continue;
    for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
      const VersionWord version(blocks[i][1 + slot]);
      if (version.timestamp() != header.timestamp() || !version.deleted()) continue;
      if (version.timestamp() > horizon) {
        ++unripe;
      } else {
        dead_rows.push_back({.record = records[i], .header = header, .slot = slot});
      }
      break;
    }
  }
  return dead_rows;
}

absl::Status Reclaimer::HashKeys(RecordTable& table, std::span<DeadRow> dead_rows) {
  const uint32_t key_bytes = table.description().key_bytes;
  const uint32_t bytes = table.indexes().empty() ? key_bytes : table.geometry().row_bytes;
  for (DeadRow& dead_row : dead_rows) {
    std::byte* const row = batch_.Scratch(bytes);
    NAM_ASSIGN_OR_RETURN(storage::Channel::Target block, table.Block(dead_row.record));
    block.address.offset += table.geometry().row_offset(dead_row.slot);
    batch_.Read(block, row, bytes);
    dead_row.row = row;
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (DeadRow& dead_row : dead_rows) dead_row.hash = table.HashOf({dead_row.row, key_bytes});
  return absl::OkStatus();
}

absl::Status Reclaimer::Announce(RecordTable& table, std::span<const DeadRow> dead_rows) {
  NAM_ASSIGN_OR_RETURN(LogEncoder log, log_.Start(dead_rows.size() * LoggedBytes(0)));
  for (const DeadRow& dead_row : dead_rows) {
    const LogEntry entry{.allocation = table.description().allocation.value(),
                         .record = dead_row.record | LogEntry::kReclaim,
                         .header = dead_row.header.word(),
                         .key_hash = dead_row.hash};
    log.Add(entry, nullptr);
  }
  NAM_RETURN_IF_ERROR(log_.AddWrites(log));
  return batch_.Execute();
}

// Skips rows that another client has inserted again, or is about to.
absl::Status Reclaimer::Lock(RecordTable& table, std::vector<DeadRow>& dead_rows) {
  auto* const olds = batch_.Words(dead_rows.size());
  for (size_t i = 0; i < dead_rows.size(); ++i) {
    const RecordHeader header = dead_rows[i].header;
    NAM_RETURN_IF_ERROR(table.AddLock(dead_rows[i].record, header, header.LockedBy(client_), olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  size_t left = 0;
  for (size_t i = 0; i < dead_rows.size(); ++i) {
    if (olds[i] == dead_rows[i].header.word()) dead_rows[left++] = dead_rows[i];
  }
  dead_rows.resize(left);
  return absl::OkStatus();
}

// Removes keys before their records: a free block may be reused at once.
absl::Status Reclaimer::Free(RecordTable& table, std::span<const DeadRow> dead_rows) {
  std::vector<HashIndex::Removal> removals;
  for (const DeadRow& dead_row : dead_rows)
    removals.push_back({.hash = dead_row.hash, .record = dead_row.record});
  NAM_RETURN_IF_ERROR(table.index().Remove(removals));
  auto* const olds = batch_.Words(dead_rows.size());
  const auto* const empty = new (batch_.Scratch(8)) VersionWord();
  for (size_t i = 0; i < dead_rows.size(); ++i) {
    NAM_RETURN_IF_ERROR(table.AddEmptySlots(dead_rows[i].record, dead_rows[i].slot, empty));
    NAM_RETURN_IF_ERROR(
        table.AddLock(dead_rows[i].record, dead_rows[i].header.LockedBy(client_), RecordHeader(), olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (size_t i = 0; i < dead_rows.size(); ++i) {
    if (olds[i] == dead_rows[i].header.LockedBy(client_).word()) continue;
    return absl::InternalError("a lock was taken away: other clients took this one for dead");
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
