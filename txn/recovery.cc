#include "txn/recovery.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "txn/client_slot.h"
#include "txn/intent_log.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;

uint64_t* Word(storage::VerbBatch& batch) {
  return reinterpret_cast<uint64_t*>(batch.Scratch(8));
}

bool BecomesFree(const LogEntry& entry, bool committed) {
  return entry.reclaim() || (entry.insert() && !committed);
}

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
  uint64_t* const word = Word(batch_);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, state_.Resolve(offset));
  batch_.Read(target, reinterpret_cast<std::byte*>(word), 8);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return *word;
}

absl::StatusOr<uint64_t> Recovery::Swap(uint64_t offset, uint64_t from, uint64_t to) {
  uint64_t* const old = Word(batch_);
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
  if (absl::IsFailedPrecondition(fenced)) return false;
  if (!fenced.ok()) {
    const int64_t now_ns = clock.NowNs();
    tables_.failed_fences().Add(member, fenced, now_ns + PauseBehindTry(now_ns - begun_ns));
    return fenced;
  }
  return true;
}

absl::Status Recovery::ConfirmGone(uint32_t client) {
  uint64_t owner_word = 0;
  NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(client, &owner_word));
  return gone ? absl::OkStatus() : absl::FailedPreconditionError("it is alive");
}

absl::StatusOr<bool> Recovery::TakeOver(uint32_t client) {
  const uint64_t at = geometry_.slot(client) + kSlotRecovererOffset;
  NAM_ASSIGN_OR_RETURN(const uint64_t word, ReadWord(at));
  if (word == self_.word()) return true;
  if (word != 0) {
    const auto recoverer = SlotRecoverer::FromWord(word);
    uint64_t owner_word = 0;
    NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(recoverer.client, &owner_word));
    // Or somebody else has its slot by now.
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
    again_ns_[client] = now_ns + PauseBehindTry(now_ns - begun_ns);
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
  again_ns = now_ns + PauseBehindTry(0);
  uint64_t owner_word = 0;
  NAM_ASSIGN_OR_RETURN(const bool gone, FenceOwner(client, &owner_word));
  if (!gone) return false;
  if (!SlotOwner::FromWord(owner_word).held()) return true;
  NAM_ASSIGN_OR_RETURN(const bool ours, TakeOver(client));
  if (!ours) return false;
  // Somebody else may have finished, and the slot may be used anew, since its owner was looked at.
  NAM_ASSIGN_OR_RETURN(const uint64_t owner_now, ReadWord(geometry_.slot(client) + kSlotOwnerOffset));
  if (owner_now != owner_word) {
    NAM_RETURN_IF_ERROR(Swap(geometry_.slot(client) + kSlotRecovererOffset, self_.word(), 0).status());
    return true;
  }
  const absl::Status finished = Finish(client, owner_word, /*locks=*/true).status();
  if (finished.ok()) return true;
  // Others may try before this session does again.
  NAM_RETURN_IF_ERROR(Swap(geometry_.slot(client) + kSlotRecovererOffset, self_.word(), 0).status());
  return finished;
}

absl::StatusOr<std::optional<bool>> Recovery::Finish(uint32_t client, uint64_t owner_word, bool locks) {
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> claimed, timestamps_.ClaimedBy(batch_, client));
  NAM_ASSIGN_OR_RETURN(const uint64_t log, ReadWord(geometry_.slot(client) + kSlotLogOffset));
  NAM_ASSIGN_OR_RETURN(const std::vector<LogEntry> entries, ReadLog(client, log, locks, claimed));
  NAM_ASSIGN_OR_RETURN(const bool committed, FinishTransaction(client, claimed, entries));
  NAM_RETURN_IF_ERROR(timestamps_.Finish(batch_, client, claimed));
  NAM_RETURN_IF_ERROR(GiveChunksBack(client));
  NAM_RETURN_IF_ERROR(logs_.GiveBackOf(batch_, client, log));
  const uint64_t snapshot_at = geometry_.slot(client) + kSlotSnapshotOffset;
  NAM_ASSIGN_OR_RETURN(const uint64_t snapshot, ReadWord(snapshot_at));
  NAM_RETURN_IF_ERROR(Swap(snapshot_at, snapshot, 0).status());
  SlotOwner recovered = SlotOwner::FromWord(owner_word);
  recovered.state = SlotState::kRecovered;
  NAM_RETURN_IF_ERROR(Swap(geometry_.slot(client) + kSlotOwnerOffset, owner_word, recovered.word()).status());
  // Without a timestamp the transaction is over, and headers do not tell any more how it ended.
  return claimed.empty() ? std::nullopt : std::optional(committed);
}

absl::StatusOr<int> Recovery::RecoverAll() {
  NAM_ASSIGN_OR_RETURN(const std::vector<SlotOwner> owners, ClientSlot::Owners(state_, geometry_, batch_));
  int recovered = 0;
  for (uint32_t client = 1; client < owners.size(); ++client) {
    if (!owners[client].held()) continue;
    const absl::StatusOr<bool> done = TryRecover(client);
    // What cannot be done for one now may be possible for the next.
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

// The recoverer first, before anybody else may be: who comes second sees what the first has left, not what
// the client had done.
absl::StatusOr<std::optional<bool>> Recovery::RecoverLost(const LostClient& lost) {
  const size_t kept = batch_.scratch_used();
  const uint64_t recoverer_at = geometry_.slot(lost.client) + kSlotRecovererOffset;
  NAM_ASSIGN_OR_RETURN(const uint64_t recoverer, Swap(recoverer_at, 0, self_.word()));
  NAM_ASSIGN_OR_RETURN(const bool held, Retire(lost));
  std::optional<bool> committed;
  if (!held) {
    NAM_RETURN_IF_ERROR(Swap(recoverer_at, self_.word(), 0).status());
  } else if (recoverer != 0) {
    NAM_RETURN_IF_ERROR(Recover(lost.client).status());
  } else {
    SlotOwner owner = lost.owner;
    owner.state = SlotState::kLost;
    NAM_ASSIGN_OR_RETURN(committed, Finish(lost.client, owner.word(), lost.locks));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.Reset(kept);
  return committed;
}

absl::StatusOr<std::vector<LogEntry>> Recovery::ReadLog(uint32_t client, uint64_t first, bool locks,
                                                        const std::vector<uint64_t>& claimed) {
  std::vector<LogEntry> entries;
  if (first == 0) return entries;
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, logs_.Open());
  NAM_RETURN_IF_ERROR(extents->FindNew());
  std::byte* const segment = batch_.Scratch(kLogSegmentBytes);
  LogDecoder log(client);
  for (uint64_t position = first; position != 0;) {
    if (extents->Lost(position)) return locks ? SearchRecords(client, claimed) : entries;
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents->Resolve(position));
    batch_.Read(at, segment, kLogSegmentBytes);
    NAM_RETURN_IF_ERROR(batch_.Execute());
    const std::optional<uint64_t> next = log.Take(segment);
    if (!next.has_value()) return entries;
    position = *next;
  }
  for (const LogDecoder::Write& write : log.Writes()) entries.push_back(write.entry);
  return entries;
}

// Whether it was committed.
absl::StatusOr<bool> Recovery::FinishTransaction(uint32_t client, const std::vector<uint64_t>& claimed,
                                                 std::span<const LogEntry> entries) {
  if (entries.empty()) return false;
  NAM_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(entries));
  bool committed = false;
  for (const Part& part : parts) {
    NAM_ASSIGN_OR_RETURN(const bool flipped, AnyFlipped(*part.table, part.entries, claimed));
    committed = committed || flipped;
  }
  // The log of a transaction that was over long ago has lost nothing.
  if (!claimed.empty()) ReportLost(client, parts, committed);
  for (const Part& part : parts) {
    NAM_RETURN_IF_ERROR(FinishTable(client, *part.table, part.entries, claimed, committed));
  }
  return committed;
}

// Tables that were dropped meanwhile need nothing.
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
    part.lost =
        std::erase_if(part.entries, [&](const LogEntry& entry) { return part.table->Lost(entry.number()); });
    parts.push_back(std::move(part));
  }
  return parts;
}

void Recovery::ReportLost(uint32_t client, std::span<const Part> parts, bool committed) {
  for (const Part& part : parts) {
    if (part.lost == 0) continue;
    tables_.Report(absl::StrFormat(
        "table %s: %d of %d rows that a client which is gone was writing (number %d) went with their memory "
        "server; the others are %s",
        part.table->description().name, part.lost, part.lost + part.entries.size(), client,
        committed ? "committed" : "as they were before"));
  }
}

absl::StatusOr<std::span<const uint64_t>> Recovery::ReadHeaders(RecordTable& table,
                                                                std::span<const LogEntry> entries) {
  auto* const headers = reinterpret_cast<uint64_t*>(batch_.Scratch(entries.size() * 8));
  for (size_t i = 0; i < entries.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table.Block(entries[i].number()));
    batch_.Read(block, reinterpret_cast<std::byte*>(headers + i), 8);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return std::span<const uint64_t>(headers, entries.size());
}

absl::StatusOr<bool> Recovery::AnyFlipped(RecordTable& table, std::span<const LogEntry> entries,
                                          const std::vector<uint64_t>& claimed) {
  NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> headers, ReadHeaders(table, entries));
  return std::any_of(headers.begin(), headers.end(), [&](uint64_t word) {
    return std::find(claimed.begin(), claimed.end(), RecordHeader(word).timestamp()) != claimed.end();
  });
}

absl::Status Recovery::FinishTable(uint32_t client, RecordTable& table, std::span<const LogEntry> entries,
                                   const std::vector<uint64_t>& claimed, bool committed) {
  NAM_CHECK(!committed || claimed.size() == 1, "a client has one transaction under way");
  NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> headers, ReadHeaders(table, entries));
  auto* const olds = reinterpret_cast<uint64_t*>(batch_.Scratch(entries.size() * 8));
  // Keys go before their records: a free record may be given to somebody else at once. Only those of records
  // that are still locked: the log may be of a transaction that was over long ago.
  for (size_t i = 0; i < entries.size() && !committed && !claimed.empty(); ++i) {
    if (headers[i] != RecordHeader(entries[i].header).LockedBy(client).word()) continue;
    NAM_RETURN_IF_ERROR(RemoveIndexEntries(table, entries[i].number(), claimed[0]));
  }
  // Of an index that has lost memory they stay: whoever follows one finds another key, or no row.
  std::vector<HashIndex::Removal> removals;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!BecomesFree(entries[i], committed)) continue;
    if (headers[i] != RecordHeader(entries[i].header).LockedBy(client).word()) continue;
    removals.push_back({.hash = entries[i].key_hash, .record = entries[i].number()});
  }
  const bool whole_index = table.index().space().CheckWhole().ok();
  if (!removals.empty() && whole_index) NAM_RETURN_IF_ERROR(table.index().Remove(removals));
  for (size_t i = 0; i < entries.size(); ++i) {
    const RecordHeader before(entries[i].header);
    RecordHeader to = before.RolledBack();
    if (committed) to = RecordHeader::Unlocked(claimed[0]);
    if (BecomesFree(entries[i], committed)) to = RecordHeader();
    NAM_RETURN_IF_ERROR(table.AddLock(entries[i].number(), before.LockedBy(client), to, olds + i));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (olds[i] != RecordHeader(entries[i].header).LockedBy(client).word()) continue;
    if (BecomesFree(entries[i], committed)) {
      NAM_RETURN_IF_ERROR(table.allocator().AddFree(batch_, entries[i].number()));
    } else if (committed) {
      // Perhaps it was deleted.
      NAM_RETURN_IF_ERROR(table.allocator().AddDeleted(batch_, entries[i].number()));
    }
  }
  return batch_.Execute();
}

// Those that led to a version which never was: it was written before them.
absl::Status Recovery::RemoveIndexEntries(RecordTable& table, uint64_t record, uint64_t timestamp) {
  if (table.indexes().empty()) return absl::OkStatus();
  const size_t kept = batch_.scratch_used();
  BlockRead block{.record = record};
  NAM_RETURN_IF_ERROR(table.AddRead(block));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  table.Take(block);
  const storage::VersionWords words = block.version_words(table.geometry());
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    const storage::VersionWord version = words[slot];
    if (version.timestamp() != timestamp || version.deleted()) continue;
    if (!table.IsWhole(block)) {
      NAM_RETURN_IF_ERROR(table.AddReadSlot(block, slot));
      NAM_RETURN_IF_ERROR(batch_.Execute());
      table.TakeSlot(block);
    }
    for (const std::unique_ptr<TableIndex>& index : table.indexes()) {
      if (!index->entries().space().CheckWhole().ok()) continue;
      const IndexKey key = index->KeyOf(block.block + table.geometry().row_offset(slot));
      const IndexEntry entry(record, IndexEntry::TagOf(timestamp));
      NAM_RETURN_IF_ERROR(index->entries().Remove(key.view(), entry.word()).status());
    }
  }
  batch_.Reset(kept);
  return absl::OkStatus();
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
