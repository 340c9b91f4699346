#include "txn/rsi/recovery.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "txn/rsi/intent_log.h"
#include "txn/timestamps/client_slot.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;

}  // namespace

Recovery::Recovery(Tables& tables, ExtentSpace& state, LogSpace& logs, StateGeometry geometry,
                   storage::VerbBatch& batch, Timestamps& timestamps, const ClientSlot& self,
                   TableOf table_of)
    : tables_(tables),
      state_(state),
      logs_(logs),
      geometry_(geometry),
      batch_(batch),
      timestamps_(timestamps),
      self_{self.owner.session, self.client},
      table_of_(std::move(table_of)) {}

absl::StatusOr<uint64_t> Recovery::ReadWord(uint64_t offset) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, state_.Resolve(offset));
  const uint64_t* const word = batch_.ReadWord(target);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return *word;
}

absl::StatusOr<uint64_t> Recovery::Swap(uint64_t offset, uint64_t from, uint64_t to) {
  uint64_t* const old = batch_.Word();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, state_.Resolve(offset));
  batch_.CompareAndSwap(target, from, to, old);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return *old;
}

// Whether the slot's owner can change nothing any more; `owner_word` is then the slot's.
absl::StatusOr<bool> Recovery::FenceOwner(uint32_t client, uint64_t* owner_word) {
  NAM_ASSIGN_OR_RETURN(*owner_word, ReadWord(geometry_.slot(client) + kSlotOwnerOffset));
  const SlotOwner owner = SlotOwner::FromWord(*owner_word);
  if (owner.state != SlotState::kUsed) return true;
  if (owner.member == tables_.member().value()) return false;
  const MemberId member(owner.member);
  Clock& clock = tables_.fabric().clock();
  const int64_t begun_ns = clock.NowNs();
  NAM_RETURN_IF_ERROR(tables_.failed_fences().Last(member, begun_ns));
  const absl::Status fenced = tables_.Fence(member);
  if (absl::IsFailedPrecondition(fenced)) {
    alive_ = owner.member;
    return false;
  }
  if (!fenced.ok()) {
    const int64_t now_ns = clock.NowNs();
    tables_.failed_fences().Add(member, fenced, now_ns + PauseAfterFenceNs(now_ns - begun_ns));
    return fenced;
  }
  return true;
}

absl::Status Recovery::ConfirmGone(uint32_t owner) {
  const uint32_t client = ordered_header::ClientOf(owner);
  if (client == 0 || client > geometry_.clients_max()) return absl::InternalError("there is no such client");
  uint64_t owner_word = 0;
  NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(client, &owner_word));
  const uint32_t session = SlotOwner::FromWord(owner_word).session;
  if (gone || ordered_header::OwnerOf(client, session) != owner) return absl::OkStatus();
  return absl::FailedPreconditionError("it is alive");
}

absl::StatusOr<bool> Recovery::TakeOver(uint32_t client) {
  const uint64_t at = geometry_.slot(client) + kSlotRecovererOffset;
  NAM_ASSIGN_OR_RETURN(const uint64_t word, ReadWord(at));
  if (word == self_.word()) return true;
  if (word != 0) {
    const auto recoverer = SlotRecoverer::FromWord(word);
    uint64_t owner_word = 0;
    NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(recoverer.client, &owner_word));
    // Or another session has its slot by now.
    if (!gone && SlotOwner::FromWord(owner_word).session == recoverer.session) return false;
  }
  NAM_ASSIGN_OR_RETURN(const uint64_t old, Swap(at, word, self_.word()));
  return old == word;
}

absl::StatusOr<bool> Recovery::TryRecover(uint32_t client) {
  const size_t kept = batch_.scratch_used();
  Clock& clock = tables_.fabric().clock();
  const int64_t begun_ns = clock.NowNs();
  const absl::StatusOr<bool> recovered = Recover(client);
  if (!recovered.ok()) {
    const int64_t now_ns = clock.NowNs();
    again_ns_[client] = now_ns + PauseAfterFenceNs(now_ns - begun_ns);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset(kept);
  return recovered;
}

absl::StatusOr<bool> Recovery::Recover(uint32_t client) {
  if (client == self_.client || client == 0 || client > geometry_.clients_max()) return false;
  const int64_t now_ns = tables_.fabric().clock().NowNs();
  int64_t& again_ns = again_ns_[client];
  if (now_ns < again_ns) return false;
  again_ns = now_ns + PauseAfterFenceNs(0);
  uint64_t owner_word = 0;
  NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(client, &owner_word));
  if (!gone) return false;
  if (!SlotOwner::FromWord(owner_word).held()) return true;
  NAM_ASSIGN_OR_RETURN(const bool ours, TakeOver(client));
  if (!ours) return false;
  // Another client may have finished, and the slot may be in use again, since its owner was READ.
  NAM_ASSIGN_OR_RETURN(const uint64_t owner_now, ReadWord(geometry_.slot(client) + kSlotOwnerOffset));
  if (owner_now != owner_word) {
    NAM_RETURN_IF_ERROR(Swap(geometry_.slot(client) + kSlotRecovererOffset, self_.word(), 0).status());
    return true;
  }
  const absl::Status finished = Finish(client, owner_word, /*locks=*/true);
  if (finished.ok()) return true;
  // Others may try before this session does again.
  NAM_RETURN_IF_ERROR(Swap(geometry_.slot(client) + kSlotRecovererOffset, self_.word(), 0).status());
  return finished;
}

absl::Status Recovery::Finish(uint32_t client, uint64_t owner_word, bool locks) {
  NAM_ASSIGN_OR_RETURN(const uint64_t word, ReadWord(geometry_.slot(client) + kSlotWordOffset));
  NAM_ASSIGN_OR_RETURN(const SlotWord fate, Decide(client, SlotWord(word)));
  NAM_ASSIGN_OR_RETURN(const uint64_t log, ReadWord(geometry_.slot(client) + kSlotLogOffset));
  NAM_ASSIGN_OR_RETURN(const std::vector<LogEntry> entries, ReadLog(client, log, locks));
  NAM_RETURN_IF_ERROR(FinishTransaction(client, fate, entries));
  NAM_RETURN_IF_ERROR(timestamps_.Finish(batch_, client, fate.timestamp()));
  NAM_RETURN_IF_ERROR(GiveChunksBack(client));
  NAM_RETURN_IF_ERROR(logs_.GiveBackOf(batch_, client, log));
  const uint64_t snapshot_at = geometry_.slot(client) + kSlotSnapshotOffset;
  NAM_ASSIGN_OR_RETURN(const uint64_t snapshot, ReadWord(snapshot_at));
  NAM_RETURN_IF_ERROR(Swap(snapshot_at, snapshot, 0).status());
  if (fate.fate() == SlotFate::kSkipped) {
    const uint64_t word_at = geometry_.slot(client) + kSlotWordOffset;
    NAM_RETURN_IF_ERROR(Swap(word_at, fate.word(), fate.Become(SlotFate::kOver).word()).status());
  }
  SlotOwner recovered = SlotOwner::FromWord(owner_word);
  recovered.state = SlotState::kRecovered;
  return Swap(geometry_.slot(client) + kSlotOwnerOffset, owner_word, recovered.word()).status();
}

absl::StatusOr<SlotWord> Recovery::Decide(uint32_t client, SlotWord word) {
  if (word.fate() != SlotFate::kClaimed) return word;
  const SlotWord skipped = word.Become(SlotFate::kSkipped);
  NAM_ASSIGN_OR_RETURN(const uint64_t old,
                       Swap(geometry_.slot(client) + kSlotWordOffset, word.word(), skipped.word()));
  // A client that was held up may have been first.
  if (old == word.word() || old == skipped.word()) return skipped;
  return absl::InternalError("the slot of a client that is gone has changed");
}

// Asks about each member only once: a process may have thousands of sessions.
absl::StatusOr<int> Recovery::RecoverAll() {
  std::vector<std::pair<SlotOwner, uint32_t>> held;
  NAM_RETURN_IF_ERROR(VisitSlots(state_, geometry_, batch_, [&](uint32_t client, const SlotWords& slot) {
    const SlotOwner owner = SlotOwner::FromWord(slot.owner);
    if (owner.held()) held.emplace_back(owner, client);
  }));
  std::stable_sort(held.begin(), held.end(),
                   [](const auto& a, const auto& b) { return a.first.member < b.first.member; });
  alive_ = 0;
  int recovered = 0;
  for (const auto& [owner, client] : held) {
    if (owner.state == SlotState::kUsed && owner.member == alive_) continue;
    const absl::StatusOr<bool> done = TryRecover(client);
    // A failure for one client may not affect the next.
    if (!done.ok() && batch_.channel().broken()) return done.status();
    recovered += done.value_or(false) ? 1 : 0;
  }
  return recovered;
}

absl::StatusOr<bool> Recovery::Retire(const LostClient& lost) {
  SlotOwner owner = lost.owner;
  owner.state = SlotState::kLost;
  NAM_ASSIGN_OR_RETURN(const uint64_t old,
                       Swap(geometry_.slot(lost.client) + kSlotOwnerOffset, lost.owner.word(), owner.word()));
  return old == lost.owner.word() || old == owner.word();
}

// Decides its undecided commit first: until the client is retired, the slot is its own. But if others take it
// for dead, the word may be another client's at the next look, so one look must suffice.
absl::Status Recovery::RecoverLost(LostClient& lost) {
  const size_t kept = batch_.scratch_used();
  const absl::Status finished = DecideAndFinish(lost);
  NAM_RETURN_IF_ERROR(
      batch_.Execute());  // also behind an error: requests may be left that use the scratch memory
  batch_.Reset(kept);
  return finished;
}

absl::Status Recovery::DecideAndFinish(LostClient& lost) {
  if (lost.deciding != 0) {
    NAM_ASSIGN_OR_RETURN(const uint64_t word, ReadWord(geometry_.slot(lost.client) + kSlotWordOffset));
    if (SlotWord(word).timestamp() == lost.deciding) {
      NAM_ASSIGN_OR_RETURN(const SlotWord fate, Decide(lost.client, SlotWord(word)));
      lost.committed = fate.fate() == SlotFate::kCommitting;
    }
  }
  NAM_ASSIGN_OR_RETURN(const bool held, Retire(lost));
  if (held) {
    NAM_ASSIGN_OR_RETURN(const bool ours, TakeOver(lost.client));
    SlotOwner owner = lost.owner;
    owner.state = SlotState::kLost;
    NAM_ASSIGN_OR_RETURN(const uint64_t owner_now, ReadWord(geometry_.slot(lost.client) + kSlotOwnerOffset));
    if (ours && owner_now == owner.word()) {
      NAM_RETURN_IF_ERROR(Finish(lost.client, owner.word(), lost.locks));
    } else if (ours) {
      const uint64_t recoverer_at = geometry_.slot(lost.client) + kSlotRecovererOffset;
      NAM_RETURN_IF_ERROR(Swap(recoverer_at, self_.word(), 0).status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LogEntry>> Recovery::ReadLog(uint32_t client, uint64_t first, bool locks) {
  std::vector<LogEntry> entries;
  if (first == 0) return entries;
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, logs_.Open());
  NAM_RETURN_IF_ERROR(extents->FindNew());
  std::byte* const segment = batch_.Scratch(kLogSegmentBytes);
  LogDecoder log(client);
  for (uint64_t position = first; position != 0;) {
    if (extents->Lost(position)) return locks ? SearchRecords(client) : entries;
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents->Resolve(position));
    batch_.Read(at, segment, kLogSegmentBytes);
    NAM_RETURN_IF_ERROR(batch_.Execute());
    const std::optional<uint64_t> next = log.Decode(segment);
    if (!next.has_value()) return entries;
    position = *next;
  }
  for (const LogDecoder::Write& write : log.Writes()) entries.push_back(write.entry);
  return entries;
}

absl::Status Recovery::FinishTransaction(uint32_t client, SlotWord fate, std::span<const LogEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(std::vector<Part> parts, PartsOf(entries));
  size_t locked = 0;
  for (Part& part : parts) {
    NAM_ASSIGN_OR_RETURN(const size_t here, FinishTable(client, part, fate));
    locked += here;
  }
  // A log of a long-finished transaction has lost nothing.
  if (locked > 0 || fate.fate() == SlotFate::kSkipped)
    ReportLost(client, parts, fate.fate() == SlotFate::kCommitting);
  return absl::OkStatus();
}

// Dropped tables need no recovery.
absl::StatusOr<std::vector<Recovery::Part>> Recovery::PartsOf(std::span<const LogEntry> entries) {
  NAM_ASSIGN_OR_RETURN(const std::vector<TableDescription> all, tables_.All());
  std::vector<Part> parts;
  for (const TableDescription& description : all) {
    Part part;
    for (const LogEntry& entry : entries) {
      if (entry.allocation == description.allocation.value()) part.entries.push_back(entry);
    }
    if (part.entries.empty()) continue;
    NAM_ASSIGN_OR_RETURN(part.table, table_of_(description));
    const absl::Status looked = part.table->FindLost();
    if (absl::IsNotFound(looked)) continue;
    NAM_RETURN_IF_ERROR(looked);
    part.described = description.indexes;
    part.lost =
        std::erase_if(part.entries, [&](const LogEntry& entry) { return part.table->Lost(entry.number()); });
    parts.push_back(std::move(part));
  }
  return parts;
}

void Recovery::ReportLost(uint32_t client, std::span<const Part> parts, bool committed) {
  for (const Part& part : parts) {
    if (part.lost == 0) continue;
    tables_.Report(
        absl::StrFormat("table %s: %d of %d rows that a dead client was writing (number %d) are lost with "
                        "their memory server; "
                        "the others are %s",
                        part.table->description().name, part.lost, part.lost + part.entries.size(), client,
                        committed ? "committed" : "as they were before"));
  }
}

// Unlocked records are not its any more: the log may be of a long-finished transaction.
absl::StatusOr<std::vector<Recovery::Locked>> Recovery::FindLocked(uint32_t client, RecordTable& table,
                                                                   std::span<const LogEntry> entries,
                                                                   SlotWord fate) {
  const storage::RecordGeometry& geometry = table.geometry();
  auto* const headers = batch_.Words(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table.Block(entries[i].number()));
    batch_.Read(block, reinterpret_cast<std::byte*>(headers + i), 8);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  std::vector<Locked> locked;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (headers[i] == RecordHeader(entries[i].header).LockedBy(client).word()) locked.push_back({entries[i]});
  }
  auto* const words = reinterpret_cast<uint64_t*>(batch_.Scratch(locked.size() * geometry.slots * 8 + 8));
  for (size_t i = 0; i < locked.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table.Block(locked[i].entry.number()));
    for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
      storage::Channel::Target at = block;
      at.address.offset += geometry.word_offset(slot);
      batch_.Read(at, reinterpret_cast<std::byte*>(words + i * geometry.slots + slot), 8);
    }
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (size_t i = 0; i < locked.size(); ++i) {
    Judge(locked[i], storage::VersionWords({words + i * geometry.slots, geometry.slots}), fate);
  }
  return locked;
}

void Recovery::Judge(Locked& record, storage::VersionWords words, SlotWord fate) {
  const uint64_t newest = RecordHeader(record.entry.header).timestamp();
  record.slot = storage::VictimSlot(words, newest);
  if (words[record.slot].timestamp() > newest) record.version = words[record.slot].timestamp();
  bool empty = true;
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    const storage::VersionWord word = words[slot];
    if (word.timestamp() == newest) record.newest = slot;
    empty = empty && word.word() == 0;
    if (slot == record.slot || word.timestamp() == 0) continue;
    const bool same = IndexEntry::TagOf(word.timestamp()) == IndexEntry::TagOf(record.version);
    record.same_tag = record.same_tag || same;
  }
  // A log that is lost does not tell that a block was being freed, but only such a block has no version.
  const bool reclaim = record.entry.reclaim() || (newest != 0 && empty);
  record.forward = !reclaim && record.version != 0 && fate.committing(record.version);
  record.frees = reclaim || (record.entry.insert() && !record.forward);
}

absl::StatusOr<size_t> Recovery::FinishTable(uint32_t client, Part& part, SlotWord fate) {
  RecordTable& table = *part.table;
  NAM_ASSIGN_OR_RETURN(const std::vector<Locked> locked, FindLocked(client, table, part.entries, fate));
  NAM_RETURN_IF_ERROR(RemoveIndexEntries(part, locked, fate));
  NAM_RETURN_IF_ERROR(RemoveKeys(table, locked));
  auto* const olds = batch_.Words(locked.size());
  const auto* const empty = new (batch_.Scratch(8)) storage::VersionWord();
  const auto header_of = [&](const Locked& record) {
    return RecordHeader(record.entry.header).LockedBy(client);
  };
  for (size_t i = 0; i < locked.size(); ++i) {
    const Locked& record = locked[i];
    const uint64_t number = record.entry.number();
    RecordHeader to = RecordHeader(record.entry.header).RolledBack();
    if (record.forward) to = RecordHeader::Unlocked(record.version);
    if (record.frees) {
      to = RecordHeader();
      NAM_RETURN_IF_ERROR(table.AddEmptySlots(number, record.newest, empty));
    } else if (!record.forward && !record.entry.only_lock()) {
      // The client may have died in the middle of its WRITE: the victim's old word, and half of a new row.
      NAM_RETURN_IF_ERROR(table.AddEmptySlot(number, record.slot, empty));
    }
    NAM_RETURN_IF_ERROR(table.AddLock(number, header_of(record), to, olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (size_t i = 0; i < locked.size(); ++i) {
    const uint64_t number = locked[i].entry.number();
    // Perhaps the row was deleted. A reader may have flipped it meanwhile.
    if (locked[i].forward) NAM_RETURN_IF_ERROR(table.allocator().AddDeleted(batch_, number));
    if (olds[i] != header_of(locked[i]).word()) continue;
    if (locked[i].frees) NAM_RETURN_IF_ERROR(table.allocator().AddFree(batch_, number));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return locked.size();
}

// Removes keys before their records: a free record may be reused at once. Keys stay in an index that has lost
// memory: a reader that follows one finds another key, or no row.
absl::Status Recovery::RemoveKeys(RecordTable& table, std::span<const Locked> locked) {
  std::vector<HashIndex::Removal> removals;
  for (const Locked& record : locked) {
    // A search of all rows found an empty block: its key is out of the index.
    const bool knows_key = record.entry.insert() || record.entry.reclaim();
    if (record.frees && knows_key)
      removals.push_back({.hash = record.entry.key_hash, .record = record.entry.number()});
  }
  const bool whole_index = table.index().space().CheckWhole().ok();
  return removals.empty() || !whole_index ? absl::OkStatus() : table.index().Remove(removals);
}

absl::Status Recovery::GiveChunksBack(uint32_t client) {
  NAM_ASSIGN_OR_RETURN(const std::vector<TableDescription> all, tables_.All());
  for (const TableDescription& description : all) {
    NAM_ASSIGN_OR_RETURN(RecordTable * table, table_of_(description));
    NAM_RETURN_IF_ERROR(table->allocator().GiveBackOf(batch_, client));
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
