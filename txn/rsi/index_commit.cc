#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/rsi/transaction.h"

/// What a commit does for the ordered indexes of the tables that it writes to: an entry for each new key,
/// while the records are locked and hold what the entries lead to (so that recovery can take them away
/// again), and before the commit is decided. docs/design/transactions.md.
namespace nam::txn {
namespace {

using storage::RecordHeader;

constexpr uint64_t kNewest = storage::kTimestampMask;

}  // namespace

// The count was READ behind the claim. Whoever changes an index counts first, and then waits for all claims
// that the slots show; a later claim has seen the new count, and asks the catalog what has changed before it
// makes its entries.
absl::Status RsiSession::CheckIndexChanges() {
  if (*index_changes_seen_ == index_changes_) return absl::OkStatus();
  const absl::Status refreshed = RefreshIndexes();
  if (refreshed.ok() || channel_->broken()) return refreshed;
  indexes_stale_ = true;
  return AbortStatus(AbortReason::kWriteWrite, "indexes were made or dropped meanwhile");
}

absl::Status RsiSession::ClaimIndexEntries() {
  for (const PendingWrite& write : writes_) {
    if (write.kind == PendingWrite::Kind::kDelete || write.only_locks()) continue;
    for (const std::unique_ptr<TableIndex>& index : table(write.table).indexes())
      NAM_RETURN_IF_ERROR(Enter(*index, write));
  }
  // All entries are there: of two clients that enter the same key at least one sees the other.
  for (const Entered& entered : entered_) {
    if (!entered.index->description().unique || entered.key.any_null) continue;
    NAM_RETURN_IF_ERROR(JudgeIndexRivals(entered));
  }
  return absl::OkStatus();
}

absl::Status RsiSession::Enter(TableIndex& index, const PendingWrite& write) {
  Entered entered{.index = &index, .write = &write, .key = index.KeyOf(write.row)};
  if (write.before != nullptr && index.KeyOf(write.before) == entered.key) return absl::OkStatus();
  entered.entry = IndexEntry(write.record, IndexEntry::TagOf(timestamp_)).word();
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

absl::Status RsiSession::JudgeIndexRivals(const Entered& entered) {
  std::set<uint64_t> rivals;
  OrderedIndex::Entries entries;
  OrderedIndex& index = entered.index->entries();
  for (OrderedIndex::Cursor cursor = index.Range(entered.key.view(), entered.key.view()); !cursor.done();) {
    NAM_RETURN_IF_ERROR(index.Next(cursor, SIZE_MAX, entries));
    for (const uint64_t value : entries.values) rivals.insert(IndexEntry(value).record());
  }
  rivals.erase(entered.write->record);
  for (const uint64_t rival : rivals) NAM_RETURN_IF_ERROR(JudgeIndexRival(entered, rival));
  return absl::OkStatus();
}

// A row that has had this key, has it, or is about to.
absl::Status RsiSession::JudgeIndexRival(const Entered& entered, uint64_t record) {
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
  NAM_RETURN_IF_ERROR(CheckScratch(from.geometry().block_bytes() + 192));
  NAM_RETURN_IF_ERROR(ReadBlocks(from, {&block, 1}, kNewest));
  const RecordHeader header = block.header();
  const storage::VersionChoice choice = Choose(from, block, kNewest);
  const bool same =
      choice.outcome == storage::VersionChoice::Outcome::kVersion && !choice.version.deleted() &&
      entered.index->KeyOf(block.block + from.geometry().row_offset(choice.slot)) == entered.key;
  batch_.Reset(kept);
  if (header.locked()) return Conflict(header, number, record);
  if (same && header.timestamp() <= snapshot_) return duplicate();
  // One that gave the key up only after this commit's timestamp has it still at that moment.
  if (same || header.timestamp() > timestamp_) return Conflict(header, number, record);
  return absl::OkStatus();
}

absl::Status RsiSession::RemoveEntered() {
  for (const Entered& entered : entered_) {
    NAM_RETURN_IF_ERROR(entered.index->entries().Remove(entered.key.view(), entered.entry).status());
  }
  entered_.clear();
  return absl::OkStatus();
}

}  // namespace nam::txn
