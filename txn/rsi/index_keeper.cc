#include "txn/rsi/index_keeper.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

/// The part of a commit that maintains the ordered indexes of the tables that it writes to: an entry for each
/// new key, made while the records are locked and hold what the entries lead to (so that recovery can remove
/// them), and before the commit is decided. docs/design/transactions.md.
namespace nam::txn {
namespace {

using storage::RecordHeader;

}  // namespace

absl::Status IndexKeeper::AddReadChanges() {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target changes, state_.Resolve(kIndexChangesOffset));
  changes_seen_ = batch_.ReadWord(changes);
  return absl::OkStatus();
}

// Takes the count first: it then reveals changes that happen while the catalog answers. A commit that asks
// has its claim, and perhaps locks, so it does not ask again for dropped tables.
absl::Status IndexKeeper::Refresh() {
  NAM_RETURN_IF_ERROR(AddReadChanges());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const uint64_t changes = *changes_seen_;
  dropped_.resize(core_.open.size());
  for (uint32_t number = 0; number < core_.open.size(); ++number) {
    if (!core_.IsOpen(number) || dropped_[number] != 0) continue;
    RecordTable& open = table(number);
    const absl::StatusOr<TableDescription> now = tables_.Find(open.description().name);
    if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
    if (!now.ok() || now->allocation != open.description().allocation) {
      dropped_[number] = 1;
      if (number < dead_.size()) dead_[number] = {};
      continue;
    }
    NAM_RETURN_IF_ERROR(open.SetIndexes(now->indexes));
    open.SetReferences(now->referenced_by);
    open.SetClosed(now->closed);
  }
  changes_ = changes;
  stale_ = false;
  return absl::OkStatus();
}

absl::StatusOr<TableIndex*> IndexKeeper::IndexOf(uint32_t number, AllocationId wanted) {
  for (const bool refreshed : {false, true}) {
    for (const std::unique_ptr<TableIndex>& index : table(number).indexes()) {
      if (index->description().allocation == wanted) return index.get();
    }
    if (!refreshed) NAM_RETURN_IF_ERROR(Refresh());
  }
  return AbortStatus(AbortReason::kWriteWrite,
                     absl::StrCat("an index of ", table(number).description().name, " was dropped"));
}

// The count was READ after the claim. A client that changes an index counts first, and then waits for all
// claims in the slots. A later claim has seen the new count, and asks the catalog what has changed before it
// makes its entries.
absl::Status IndexKeeper::CheckChanges() {
  if (unchanged()) return CheckOpenToWrites();
  const absl::Status refreshed = Refresh();
  if (refreshed.ok()) return CheckOpenToWrites();
  if (channel_->broken()) return refreshed;
  stale_ = true;
  return AbortStatus(AbortReason::kWriteWrite, "indexes were created or dropped meanwhile");
}

// A load closes its table, counts, waits for all claims, and then sees whether the table is still empty. So
// this commit is seen, or it sees that the table is closed or has another storage by now. The session must
// ask again: a load may be given up.
absl::Status IndexKeeper::CheckOpenToWrites() {
  for (const PendingWrite& write : writes_) {
    const bool dropped = write.table < dropped_.size() && dropped_[write.table] != 0;
    if (!dropped && !table(write.table).closed()) continue;
    stale_ = true;
    return AbortStatus(AbortReason::kWriteWrite, absl::StrCat("table ", table(write.table).description().name,
                                                              " was loaded or dropped meanwhile"));
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::ClaimEntries() {
  for (const PendingWrite& write : writes_) {
    if (write.kind == PendingWrite::Kind::kDelete || write.only_locks()) continue;
    for (const std::unique_ptr<TableIndex>& index : table(write.table).indexes())
      NAM_RETURN_IF_ERROR(Enter(*index, write));
  }
  // All entries exist now: of two clients that enter the same key at least one sees the other.
  for (const Entered& entered : entered_) {
    if (!entered.index->description().unique || entered.key.any_null) continue;
    NAM_RETURN_IF_ERROR(JudgeRivals(entered));
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::Enter(TableIndex& index, const PendingWrite& write) {
  Entered entered{.index = &index, .write = &write, .key = index.KeyOf(write.row)};
  if (write.before != nullptr && index.KeyOf(write.before) == entered.key) return absl::OkStatus();
  entered.entry = IndexEntry(write.record, IndexEntry::TagOf(transaction_.timestamp)).word();
  const absl::StatusOr<bool> inserted = index.entries().Insert(entered.key.view(), entered.entry);
  if (absl::IsAborted(inserted.status())) {
    return AbortStatus(AbortReason::kWriteWrite, std::string(inserted.status().message()));
  }
  NAM_RETURN_IF_ERROR(inserted.status());
  if (!*inserted) {
    return AbortStatus(AbortReason::kWriteWrite, "an entry of an older version has the same tag");
  }
  entered_.push_back(entered);
  return absl::OkStatus();
}

absl::Status IndexKeeper::JudgeRivals(const Entered& entered) {
  std::set<uint64_t> rivals;
  OrderedIndex::Entries entries;
  OrderedIndex& index = entered.index->entries();
  for (OrderedIndex::Cursor cursor = index.Range(entered.key.view(), entered.key.view()); !cursor.done();) {
    NAM_RETURN_IF_ERROR(index.Next(cursor, SIZE_MAX, entries));
    for (const uint64_t value : entries.values) rivals.insert(IndexEntry(value).record());
  }
  rivals.erase(entered.write->record);
  for (const uint64_t rival : rivals) NAM_RETURN_IF_ERROR(JudgeRival(entered, rival));
  return absl::OkStatus();
}

// Judges a row that has had this key, has it, or is about to.
absl::Status IndexKeeper::JudgeRival(const Entered& entered, uint64_t record) {
  const uint32_t number = entered.write->table;
  RecordTable& from = table(number);
  const std::string& name = from.description().name;
  const auto duplicate = [&] {
    return AbortStatus(
        AbortReason::kUniqueKey,
        absl::StrCat("another row of ", name, " has this key of index ", entered.index->description().name));
  };
  if (const PendingWrite* const own = writes_.OfRecord(number, record); own != nullptr) {
    const bool same =
        own->kind != PendingWrite::Kind::kDelete && entered.index->KeyOf(own->row) == entered.key;
    return same ? duplicate() : absl::OkStatus();
  }
  const size_t kept = batch_.scratch_used();
  BlockRead block{.record = record};
  NAM_RETURN_IF_ERROR(core_.CheckScratch(from.geometry().block_bytes() + 192));
  NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from, {&block, 1}, RowReader::kNewest));
  const RecordHeader header = block.header();
  const storage::VersionChoice choice = reader_.Choose(from, block, RowReader::kNewest);
  const bool same =
      choice.outcome == storage::VersionChoice::Outcome::kVersion && !choice.version.deleted() &&
      entered.index->KeyOf(block.block + from.geometry().row_offset(choice.slot)) == entered.key;
  batch_.Reset(kept);
  if (header.locked()) return core_.Conflict(header, number, record);
  if (same && header.timestamp() <= transaction_.snapshot) return duplicate();
  // A row that gave the key up after this commit's timestamp still has it at that moment.
  if (same || header.timestamp() > transaction_.timestamp) return core_.Conflict(header, number, record);
  return absl::OkStatus();
}

absl::Status IndexKeeper::RemoveEntered() {
  for (const Entered& entered : entered_) {
    NAM_RETURN_IF_ERROR(entered.index->entries().Remove(entered.key.view(), entered.entry).status());
  }
  entered_.clear();
  return absl::OkStatus();
}

}  // namespace nam::txn
