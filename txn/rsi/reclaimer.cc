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

/// A deleted row.
struct Reclaimer::Grave {
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
        std::vector<Grave> graves,
        FindGraves(table, records.first(std::min(portion, records.size())), horizon.value, unripe));
    if (!graves.empty()) {
      NAM_RETURN_IF_ERROR(HashKeys(table, graves));
      NAM_RETURN_IF_ERROR(Announce(table, graves));
      NAM_RETURN_IF_ERROR(Lock(table, graves));
      NAM_RETURN_IF_ERROR(Free(table, graves));
      for (const Grave& grave : graves) {
        freed.push_back(grave.record);
        if (!table.indexes().empty()) buried_(table, grave.record, grave.row, grave.header.timestamp());
      }
    }
    batch_.Reset(kept);
  }
  if (unripe > 0) held_by_ = horizon.held_by;
  return unripe;
}

// The words of a block need not be of one moment: a newest version stays as it is, and the lock fails if it
// is not the newest any more.
absl::StatusOr<std::vector<Reclaimer::Grave>> Reclaimer::FindGraves(RecordTable& table,
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
  std::vector<Grave> graves;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordHeader header(blocks[i][0]);
    if (header.locked() || header.timestamp() == 0) continue;
    for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
      const VersionWord version(blocks[i][1 + slot]);
      if (version.timestamp() != header.timestamp() || !version.deleted()) continue;
      if (version.timestamp() > horizon) {
        ++unripe;
      } else {
        graves.push_back({.record = records[i], .header = header, .slot = slot});
      }
      break;
    }
  }
  return graves;
}

absl::Status Reclaimer::HashKeys(RecordTable& table, std::span<Grave> graves) {
  const uint32_t key_bytes = table.description().key_bytes;
  const uint32_t bytes = table.indexes().empty() ? key_bytes : table.geometry().row_bytes;
  for (Grave& grave : graves) {
    std::byte* const row = batch_.Scratch(bytes);
    NAM_ASSIGN_OR_RETURN(storage::Channel::Target block, table.Block(grave.record));
    block.address.offset += table.geometry().row_offset(grave.slot);
    batch_.Read(block, row, bytes);
    grave.row = row;
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Grave& grave : graves) grave.hash = table.HashOf({grave.row, key_bytes});
  return absl::OkStatus();
}

absl::Status Reclaimer::Announce(RecordTable& table, std::span<const Grave> graves) {
  NAM_ASSIGN_OR_RETURN(LogEncoder log, log_.Start(graves.size() * LoggedBytes(0)));
  for (const Grave& grave : graves) {
    const LogEntry entry{.allocation = table.description().allocation.value(),
                         .record = grave.record | LogEntry::kReclaim,
                         .header = grave.header.word(),
                         .key_hash = grave.hash};
    log.Add(entry, nullptr);
  }
  NAM_RETURN_IF_ERROR(log_.AddWrites(log));
  return batch_.Execute();
}

// Skips rows that another client has inserted again, or is about to.
absl::Status Reclaimer::Lock(RecordTable& table, std::vector<Grave>& graves) {
  auto* const olds = batch_.Words(graves.size());
  for (size_t i = 0; i < graves.size(); ++i) {
    const RecordHeader header = graves[i].header;
    NAM_RETURN_IF_ERROR(table.AddLock(graves[i].record, header, header.LockedBy(client_), olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  size_t left = 0;
  for (size_t i = 0; i < graves.size(); ++i) {
    if (olds[i] == graves[i].header.word()) graves[left++] = graves[i];
  }
  graves.resize(left);
  return absl::OkStatus();
}

// Removes keys before their records: a free block may be reused at once.
absl::Status Reclaimer::Free(RecordTable& table, std::span<const Grave> graves) {
  std::vector<HashIndex::Removal> removals;
  for (const Grave& grave : graves) removals.push_back({.hash = grave.hash, .record = grave.record});
  NAM_RETURN_IF_ERROR(table.index().Remove(removals));
  auto* const olds = batch_.Words(graves.size());
  const auto* const empty = new (batch_.Scratch(8)) VersionWord();
  for (size_t i = 0; i < graves.size(); ++i) {
    NAM_RETURN_IF_ERROR(table.AddEmptySlots(graves[i].record, empty));
    NAM_RETURN_IF_ERROR(
        table.AddLock(graves[i].record, graves[i].header.LockedBy(client_), RecordHeader(), olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (size_t i = 0; i < graves.size(); ++i) {
    if (olds[i] == graves[i].header.LockedBy(client_).word()) continue;
    return absl::InternalError("a lock was taken away: other clients took this one for dead");
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
