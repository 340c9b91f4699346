#include "txn/rsi/index_keeper.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

/// The part of a commit that maintains the ordered indexes of the tables that it writes to: an entry for each
/// new key, made while the records are locked and hold what the entries lead to (so that recovery can remove
/// them), and before the commit is decided. docs/design/transactions.md.
namespace nam::txn {
namespace {

using storage::RecordHeader;

constexpr size_t kJudgedAtOnce = 512;

}  // namespace

absl::Status IndexKeeper::AddReadChanges() {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target changes, state_.Resolve(kIndexChangesOffset));
  changes_seen_ = batch_.ReadWord(changes);
  return absl::OkStatus();
}

// Takes the count first: it then reveals changes that happen while the catalog answers. A commit that asks
// has its claim, and perhaps locks, so it asks once for all tables, and not again for dropped ones.
absl::Status IndexKeeper::Refresh() {
  NAM_RETURN_IF_ERROR(AddReadChanges());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const uint64_t changes = *changes_seen_;
  dropped_.resize(core_.open.size());
  std::vector<std::string> names;
  for (uint32_t number = 0; number < core_.open.size(); ++number) {
    if (core_.IsOpen(number) && dropped_[number] == 0) names.push_back(table(number).description().name);
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<TableDescription> all, tables_.FindAll(names));
  for (uint32_t number = 0; number < core_.open.size(); ++number) {
    if (!core_.IsOpen(number) || dropped_[number] != 0) continue;
    RecordTable& open = table(number);
    const auto now = std::find_if(all.begin(), all.end(), [&](const TableDescription& described) {
      return described.allocation == open.description().allocation;
    });
    if (now == all.end()) {
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
  if (refreshed.ok()) {
    ForgetDropped();
    return CheckOpenToWrites();
  }
  if (channel_->broken()) return refreshed;
  ForgetEntered();  // they cost memory and a look, and their index may have no memory any more
  stale_ = true;
  return AbortStatus(AbortReason::kWriteWrite, "indexes were created or dropped meanwhile");
}

void IndexKeeper::ForgetDropped() {
  std::erase_if(entered_, [&](const Entered& entered) {
    if (dropped_[entered.table] != 0) return true;
    const auto indexes = table(entered.table).indexes();
    return std::none_of(indexes.begin(), indexes.end(), [&](const std::unique_ptr<TableIndex>& open) {
      return open->description().allocation == entered.allocation;
    });
  });
}

// A load closes its table, counts, waits for all claims, and then sees whether the table is still empty. So
// this commit is seen, or it sees that the table is closed or has another storage by now. The session must
// ask again: a load may be given up.
absl::Status IndexKeeper::CheckOpenToWrites() {
  for (const PendingWrite& write : writes_) {
    if (!dropped(write.table) && !table(write.table).closed()) continue;
    stale_ = true;
    return AbortStatus(AbortReason::kWriteWrite, absl::StrCat("table ", table(write.table).description().name,
                                                              " was loaded or dropped meanwhile"));
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::ClaimEntries() {
  if (std::all_of(core_.open.begin(), core_.open.end(), [](const std::unique_ptr<RecordTable>& open) {
        return open == nullptr || open->indexes().empty();
      }))
    return absl::OkStatus();
  const size_t known = entered_.size();
  NAM_RETURN_IF_ERROR(CollectEntries());
  const std::span<Entered> fresh = std::span(entered_).subspan(known);
  for (Entered& entered : fresh) NAM_RETURN_IF_ERROR(Enter(entered));
  // All entries exist now: of two clients that enter the same key at least one sees the other.
  for (const Entered& entered : fresh) {
    if (!entered.index->description().unique) continue;
    NAM_RETURN_IF_ERROR(JudgeRivals(entered));
  }
  return absl::OkStatus();
}

// Statements have reserved the memory, but for indexes that are new since.
absl::Status IndexKeeper::CollectEntries() {
  std::vector<std::vector<size_t>> places;  // by table: of its indexes in entered_
  std::vector<size_t> writes;               // by table: those that may make entries
  places.resize(core_.open.size());
  writes.resize(core_.open.size());
  uint64_t bytes = 0;
  for (const PendingWrite& write : writes_) {
    if (!write.makes_entries()) continue;
    ++writes[write.table];
    bytes += table(write.table).change_bytes();
  }
  if (bytes > writes_.entry_bytes()) NAM_RETURN_IF_ERROR(core_.CheckScratch(bytes - writes_.entry_bytes()));
  for (uint32_t number = 0; number < writes.size(); ++number) {
    if (writes[number] == 0) continue;
    for (const std::unique_ptr<TableIndex>& index : table(number).indexes()) {
      const AllocationId allocation = index->description().allocation;
      const bool known = std::any_of(entered_.begin(), entered_.end(), [&](const Entered& entered) {
        return entered.allocation == allocation;
      });
      if (known) continue;
      places[number].push_back(entered_.size());
      entered_.push_back({.allocation = allocation, .index = index.get(), .table = number, .entries = {}});
      entered_.back().entries.reserve(writes[number]);
    }
  }
  const uint32_t tag = transaction_.timestamp != 0 ? IndexEntry::TagOf(transaction_.timestamp)
                                                   : IndexEntry::EarlyTag(tables_.fabric().Random());
  std::array<std::byte, kOrderedKeyBytesMax> before;
  for (const PendingWrite& write : writes_) {
    if (!write.makes_entries()) continue;
    for (const size_t place : places[write.table]) {
      Entered& entered = entered_[place];
      const OrderedShape& shape = entered.index->entries().shape();
      std::byte* const entry = keys_.Take(shape.entry_bytes());
      const bool any_null = entered.index->WriteKey(write.row, entry);
      if (write.before != nullptr) {
        entered.index->WriteKey(write.before, before.data());
        if (std::memcmp(entry, before.data(), shape.key_bytes) == 0) continue;
      }
      shape.SetValue(entry, IndexEntry(write.record, tag).word());
      entered.entries.push_back({.entry = entry, .any_null = any_null});
    }
  }
  return absl::OkStatus();
}

// Sorted entries share round trips: those of a leaf, and those of several leaves.
absl::Status IndexKeeper::Enter(Entered& entered) {
  OrderedIndex& index = entered.index->entries();
  std::sort(entered.entries.begin(), entered.entries.end(),
            [&](const OrderedIndex::Change& a, const OrderedIndex::Change& b) {
              return index.shape().Compare(a.entry, b.entry) < 0;
            });
  const absl::Status inserted = index.Insert(entered.entries);
  if (absl::IsAborted(inserted) && !AbortReasonOf(inserted).has_value())
    return AbortStatus(AbortReason::kWriteWrite, std::string(inserted.message()));
  NAM_RETURN_IF_ERROR(inserted);
  for (const OrderedIndex::Change& change : entered.entries) {
    if (!change.applied)
      return AbortStatus(AbortReason::kWriteWrite, "an entry of an older version has the same tag");
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::JudgeRivals(const Entered& entered) {
  std::vector<OrderedIndex::Change> wanted;
  // Of own rows with one key the first finds the others.
  const size_t key_bytes = entered.index->description().key_bytes;
  for (const OrderedIndex::Change& change : entered.entries) {
    if (!wanted.empty() && std::memcmp(wanted.back().entry, change.entry, key_bytes) == 0) continue;
    if (!change.any_null) wanted.push_back(change);
    if (wanted.size() < kJudgedAtOnce) continue;
    NAM_RETURN_IF_ERROR(JudgeRivals(entered, wanted));
    wanted.clear();
  }
  return JudgeRivals(entered, wanted);
}

// A record's entries with one key are adjacent.
absl::Status IndexKeeper::JudgeRivals(const Entered& entered, std::span<OrderedIndex::Change> wanted) {
  struct Rival {
    size_t place = 0;
    uint64_t record = 0;
    bool operator==(const Rival&) const = default;
  };
  std::vector<Rival> rivals;
  OrderedIndex& index = entered.index->entries();
  NAM_RETURN_IF_ERROR(index.Lookup(wanted, [&](size_t place, uint64_t value) {
    const Rival rival{place, IndexEntry(value).record()};
    if (rival.record == IndexEntry(index.shape().ValueOf(wanted[place].entry)).record()) return;
    if (rivals.empty() || rivals.back() != rival) rivals.push_back(rival);
  }));
  for (const Rival& rival : rivals) {
    NAM_RETURN_IF_ERROR(core_.GoOn());
    NAM_RETURN_IF_ERROR(JudgeRival(entered, index.shape().KeyOf(wanted[rival.place].entry), rival.record));
  }
  return absl::OkStatus();
}

// Judges a row that has had this key, has it, or is about to.
absl::Status IndexKeeper::JudgeRival(const Entered& entered, std::span<const std::byte> key,
                                     uint64_t record) {
  const uint32_t number = entered.table;
  const auto has_key = [&](const std::byte* row) {
    return std::memcmp(entered.index->KeyOf(row).bytes.data(), key.data(), key.size()) == 0;
  };
  RecordTable& from = table(number);
  const std::string& name = from.description().name;
  const auto duplicate = [&] {
    return AbortStatus(
        AbortReason::kUniqueKey,
        absl::StrCat("another row of ", name, " has this key of index ", entered.index->description().name));
  };
  if (const PendingWrite* const own = writes_.OfRecord(number, record); own != nullptr) {
    const bool same = own->kind != PendingWrite::Kind::kDelete && has_key(own->row);
    return same ? duplicate() : absl::OkStatus();
  }
  const size_t kept = batch_.scratch_used();
  BlockRead block{.record = record};
  NAM_RETURN_IF_ERROR(core_.CheckScratch(from.geometry().block_bytes() + 192));
  NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from, {&block, 1}, RowReader::kNewest));
  const RecordHeader header = block.header();
  const storage::VersionChoice choice = reader_.Choose(from, block, RowReader::kNewest);
  const bool same = choice.outcome == storage::VersionChoice::Outcome::kVersion &&
                    !choice.version.deleted() &&
                    has_key(block.block + from.geometry().row_offset(choice.slot));
  batch_.Reset(kept);
  if (header.locked()) return core_.Conflict(header, number, record);
  if (same && header.timestamp() <= transaction_.snapshot) return duplicate();
  // A row that gave the key up after this commit's timestamp still has it at that moment.
  if (same || core_.ChangedLater(header)) return core_.Conflict(header, number, record);
  return absl::OkStatus();
}

absl::Status IndexKeeper::RemoveEntered() {
  for (Entered& entered : entered_) {
    std::erase_if(entered.entries, [](const OrderedIndex::Change& change) { return !change.applied; });
    NAM_RETURN_IF_ERROR(entered.index->entries().Remove(entered.entries));
  }
  ForgetEntered();
  return absl::OkStatus();
}

void IndexKeeper::ForgetEntered() {
  if (entered_.empty()) return;
  entered_.clear();
  keys_.Clear();
}

}  // namespace nam::txn
