#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "txn/rsi/recovery.h"

/// Takes back the index entries of a dead client's transaction. Their versions were written before them, so
/// that they tell the keys. They do not tell the tags: an entry may be older than its transaction's
/// timestamp. But a key that no other version of the locked record has leads to it by such entries alone, or
/// by stale ones. If another version has the key, an entry that cannot be told from that version's stays: it
/// promises nothing.
///
///     fenced ─▶ slot: skipped ─▶ the catalog's list of indexes ─▶ entries removed ─▶ slot: over
///
/// The catalog is asked behind the fence: its list has every index that the dead client knew and that is
/// still there. It may have more than this client's tables do, or less. So recovery opens what they lack for
/// itself, and leaves their lists alone: a statement or commit of this client may be under way with them. An
/// index that is dropped meanwhile keeps its memory until the slot is over, as for any commit.
namespace nam::txn {

// Only a claim makes entries, and recovery has skipped it. A log without a claim has none to take back, and
// nobody who drops an index waits for its client.
absl::Status Recovery::RemoveIndexEntries(Part& part, std::span<const Locked> locked, SlotWord fate) {
  if (fate.fate() != SlotFate::kSkipped) return absl::OkStatus();
  for (const Locked& record : locked) {
    if (record.version == 0) continue;
    NAM_RETURN_IF_ERROR(OpenIndexes(part));
    NAM_RETURN_IF_ERROR(RemoveEntriesOf(part, record));
  }
  return absl::OkStatus();
}

// Leaves out those that are dropped, or have lost memory.
absl::Status Recovery::OpenIndexes(Part& part) {
  for (const IndexDescription& description : std::exchange(part.described, {})) {
    const auto known = std::find_if(
        part.table->indexes().begin(), part.table->indexes().end(),
        [&](const auto& open) { return open->description().allocation == description.allocation; });
    TableIndex* index = known == part.table->indexes().end() ? nullptr : known->get();
    if (index == nullptr) {
      absl::StatusOr<std::unique_ptr<TableIndex>> opened = part.table->OpenIndex(description);
      if (absl::IsNotFound(opened.status())) continue;
      if (!opened.ok()) return opened.status();
      index = part.opened.emplace_back(*std::move(opened)).get();
    }
    const absl::Status found = index->entries().space().FindNew();
    if (!found.ok() && !absl::IsNotFound(found)) return found;
    if (found.ok() && index->entries().space().CheckWhole().ok()) part.indexes.push_back(index);
  }
  return absl::OkStatus();
}

absl::Status Recovery::RemoveEntriesOf(Part& part, const Locked& locked) {
  if (part.indexes.empty()) return absl::OkStatus();
  RecordTable& table = *part.table;
  const size_t kept = batch_.scratch_used();
  const uint64_t record = locked.entry.number();
  const storage::RecordGeometry& geometry = table.geometry();
  std::byte* const block = batch_.Scratch(geometry.block_bytes());
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, table.Block(record));
  batch_.Read(at, block, geometry.block_bytes());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const storage::VersionWords words(block, geometry);
  for (TableIndex* const index : part.indexes) {
    const IndexKey key = index->KeyOf(block + geometry.row_offset(locked.slot));
    bool shared = false;
    for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
      if (slot == locked.slot || words[slot].timestamp() == 0 || words[slot].deleted()) continue;
      shared = shared || index->KeyOf(block + geometry.row_offset(slot)) == key;
    }
    const IndexEntry own(record, IndexEntry::TagOf(locked.version));
    const bool knows_tag = !locked.same_tag && locked.version != storage::kPendingTimestamp;
    OrderedIndex& entries = index->entries();
    OrderedIndex::Entries found;
    for (auto cursor = entries.ValuesOf(key.view(), IndexEntry(record, 0).word(),
                                        IndexEntry(record, ~uint32_t{0}).word());
         !cursor.done();) {
      NAM_RETURN_IF_ERROR(entries.Next(cursor, SIZE_MAX, found));
      for (const uint64_t value : found.values) {
        const bool goes = !shared || (knows_tag && value == own.word());
        if (goes) NAM_RETURN_IF_ERROR(entries.Remove(key.view(), value).status());
      }
    }
  }
  batch_.Reset(kept);
  return absl::OkStatus();
}

}  // namespace nam::txn
