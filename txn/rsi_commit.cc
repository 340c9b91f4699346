#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "txn/rsi_transaction.h"

/// The commit, one round trip after the other:
///
///     Announce   log entry; a timestamp is asked for; whether the keys of inserts are there already
///     Lock       every record that is there by CAS; the timestamp is claimed; new rows are written, locked
///     Install    payloads into victims; keys of new rows into the hash indexes
///     ClaimIndexEntries  new keys into the ordered indexes, if the tables have some
///     Flip       headers by CAS: from here on it has happened
///     AddDone    visible, once all clients see it done: nobody waits for it
///
/// Until Flip everything can be taken back, and RollBack does. docs/design/transactions.md.
namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;
using Kind = PendingWrite::Kind;

uint64_t* Word(storage::VerbBatch& batch) {
  return reinterpret_cast<uint64_t*>(batch.Scratch(8));
}

storage::Channel::Target At(storage::Channel::Target block, uint64_t offset) {
  block.address.offset += offset;
  return block;
}

}  // namespace

absl::StatusOr<uint64_t> RsiSession::Commit() {
  NAM_RETURN_IF_ERROR(CheckActive());
  std::erase_if(writes_, [](const PendingWrite& write) { return write.withdrawn; });
  if (writes_.empty()) {
    NAM_RETURN_IF_ERROR(End(absl::OkStatus()));
    return 0;
  }
  absl::Status status = CommitWrites();
  // Also if the session was lost behind it.
  if (!committed_) return status;
  last_commit_ = timestamp_;
  return last_commit_;
}

absl::Status RsiSession::CommitWrites() {
  NAM_CHECK(writes_.size() <= kWritesMax, "statements have refused more");
  if (absl::Status status = PlaceInserts(); !status.ok()) return End(status);
  if (absl::Status status = Announce(); !status.ok()) return End(status);
  if (absl::Status status = JudgeSought(); !status.ok()) {
    if (absl::Status skipped = timestamps_->AddSkip(batch_); !skipped.ok()) return End(skipped);
    return End(status);
  }
  locking_ = true;
  absl::Status status = Lock();
  if (status.ok()) status = CheckIndexChanges();
  if (status.ok()) status = Install();
  if (status.ok()) status = ClaimIndexEntries();
  if (!status.ok()) {
    if (!AbortReasonOf(status).has_value() && !absl::IsResourceExhausted(status)) return End(status);
    if (absl::Status undone = RollBack(); !undone.ok()) return End(undone);
    locking_ = false;
    return End(status);
  }
  const Interruption none(nullptr);  // it cannot be taken back any more
  phase_ = Phase::kFlipping;
  if (absl::Status flipped = Flip(); !flipped.ok()) return End(flipped);
  phase_ = Phase::kFlipped;
  committed_ = true;
  lost_to_locks_ = 0;
  // What is not cleaned up stays, but for a broken channel that is no error of this commit's.
  if (absl::Status cleaned = CleanIndexes(); channel_->broken()) return End(cleaned);
  if (!options_.broken.visible_early) {
    if (absl::Status done = timestamps_->AddDone(batch_, timestamp_); !done.ok()) return End(done);
  }
  for (const PendingWrite& write : writes_) {
    if (write.kind != Kind::kDelete) {
      const std::byte* const before = write.before != nullptr ? write.before : write.buried;
      if (before != nullptr) NoteOutlived(write.table, write.record, before, write.row, timestamp_);
      continue;
    }
    absl::Status counted = table(write.table).allocator().AddDeleted(batch_, write.record);
    if (!counted.ok()) return End(counted);
  }
  locking_ = false;
  return End(absl::OkStatus());
}

// A record of its own for every insert, as if no row had its key; whether one has is READ along.
absl::Status RsiSession::PlaceInserts() {
  for (PendingWrite& write : writes_) {
    if (write.placed) continue;
    NAM_ASSIGN_OR_RETURN(write.record, table(write.table).allocator().Allocate(batch_, &write.zeroed));
    write.placed = true;
    NAM_ASSIGN_OR_RETURN(write.block, table(write.table).Block(write.record));
  }
  return SeekKeys();
}

// Statements have kept scratch memory for it (kCommitBytes).
absl::Status RsiSession::SeekKeys() {
  claims_.resize(tables_open_.size());
  for (std::vector<HashIndex::Claim>& claims : claims_) claims.clear();
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    claims_[write.table].push_back({.hash = write.hash, .record = write.record});
  }
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (claims_[number].empty()) continue;
    NAM_RETURN_IF_ERROR(table(number).index().AddSeek(claims_[number]));
  }
  return absl::OkStatus();
}

// Nearly always nothing looks like the keys of the inserts. Else rows are looked up, and what was announced
// is announced anew.
absl::Status RsiSession::JudgeSought() {
  bool clear = true;
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    std::vector<HashIndex::Claim>& claims = claims_[number];
    if (claims.empty()) continue;
    clear = table(number).index().Sought(claims) && clear;
    clear = clear && std::all_of(claims.begin(), claims.end(),
                                 [](const HashIndex::Claim& claim) { return claim.rivals.count == 0; });
  }
  if (clear) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(TakeOverDeleted());
  NAM_RETURN_IF_ERROR(SeekKeys());
  NAM_RETURN_IF_ERROR(AddLog());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (!claims_[number].empty()) table(number).index().Sought(claims_[number]);
  }
  return absl::OkStatus();
}

// A row with the key of an insert: one that was deleted gets a new version, any other is in the way.
absl::Status RsiSession::TakeOverDeleted() {
  sought_.clear();
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    const uint32_t key_bytes = table(write.table).description().key_bytes;
    sought_.push_back({.table = write.table, .key = {write.row, key_bytes}, .hash = write.hash});
  }
  const size_t kept = batch_.scratch_used();
  NAM_RETURN_IF_ERROR(Find(sought_));
  size_t next = 0;
  bool any_taken_over = false;
  for (PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    const SoughtRow& found = sought_[next++];
    const std::string& name = table(write.table).description().name;
    switch (found.state) {
      case SoughtRow::State::kNone:
        break;
      case SoughtRow::State::kVisible:
        return AbortStatus(AbortReason::kUniqueKey, name);
      case SoughtRow::State::kTooOld:
      case SoughtRow::State::kInvisible:
      case SoughtRow::State::kInFlight:
        return Conflict(found.header, name);
      case SoughtRow::State::kDeleted:
        if (found.header.locked() || found.header.timestamp() != found.version.timestamp()) {
          return Conflict(found.header, name);
        }
        NAM_RETURN_IF_ERROR(table(write.table).allocator().AddFree(batch_, write.record));
        write.fresh = false;
        write.record = found.record;
        NAM_ASSIGN_OR_RETURN(write.block, table(write.table).Block(write.record));
        write.header = found.header;
        write.victim = found.victim;
        write.buried = found.row;
        any_taken_over = true;
    }
  }
  if (!any_taken_over) batch_.Reset(kept);
  return absl::OkStatus();
}

absl::Status RsiSession::Announce() {
  NAM_RETURN_IF_ERROR(AddLog());
  NAM_RETURN_IF_ERROR(timestamps_->AddTake(batch_));
  return batch_.Execute();
}

absl::Status RsiSession::AddLog() {
  NAM_ASSIGN_OR_RETURN(LogEncoder log, log_->Start(writes_.size() * LoggedBytes(0)));
  for (const PendingWrite& write : writes_) {
    const LogEntry entry{.allocation = table(write.table).description().allocation.value(),
                         .record = write.record | (write.fresh ? LogEntry::kInsert : 0),
                         .header = write.header.word(),
                         .key_hash = write.hash};
    log.Add(entry, nullptr);
  }
  return log_->AddWrites(log);
}

absl::Status RsiSession::Lock() {
  NAM_RETURN_IF_ERROR(timestamps_->AddClaim(batch_));
  NAM_RETURN_IF_ERROR(AddReadIndexChanges());
  uint64_t* const empty = Word(batch_);
  *empty = VersionWord().word();
  for (PendingWrite& write : writes_) {
    write.old = Word(batch_);
    const RecordHeader locked = write.header.LockedBy(slot_.client);
    if (!write.fresh) {
      batch_.CompareAndSwap(write.block, write.header.word(), locked.word(), write.old);
      continue;
    }
    // Nobody else has this record: no CAS, and the header with slot 0 behind it.
    const storage::RecordGeometry& geometry = table(write.table).geometry();
    uint64_t* const words = write.version() - 1;
    words[0] = locked.word();
    words[1] = VersionWord::Of(timestamps_->taken(), false, true).word();
    *write.old = write.header.word();
    batch_.Write(reinterpret_cast<std::byte*>(words), 8 + geometry.version_bytes(), write.block);
    if (!write.zeroed) EmptyOtherSlots(write, empty);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(ClaimTimestamp());
  if (options_.broken.blind_locks) NAM_RETURN_IF_ERROR(LockBlindly());
  for (const PendingWrite& write : writes_) {
    if (*write.old == write.header.word()) continue;
    return Conflict(RecordHeader(*write.old), table(write.table).description().name);
  }
  return absl::OkStatus();
}

// The block of a new row may have held another one.
void RsiSession::EmptyOtherSlots(const PendingWrite& write, const uint64_t* empty) {
  const storage::RecordGeometry& geometry = table(write.table).geometry();
  for (uint32_t slot = 1; slot < geometry.slots; ++slot) {
    batch_.Write(reinterpret_cast<const std::byte*>(empty), 8, At(write.block, geometry.word_offset(slot)));
  }
}

// If it became another one than they were written with, the new rows carry that.
absl::Status RsiSession::ClaimTimestamp() {
  NAM_ASSIGN_OR_RETURN(const bool as_taken, timestamps_->Settle(batch_));
  timestamp_ = timestamps_->taken();
  if (as_taken) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(AddReadIndexChanges());
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    *write.version() = VersionWord::Of(timestamp_, false, true).word();
    batch_.Write(reinterpret_cast<std::byte*>(write.version()), 8,
                 At(write.block, table(write.table).geometry().word_offset(0)));
  }
  return batch_.Execute();
}

// Other records whose keys look alike. Looked up before, they were not there, so the same key is a
// newcomer's.
absl::Status RsiSession::JudgeRivals(uint32_t number, std::span<const HashIndex::Claim> claims) {
  readings_.clear();
  sought_.clear();
  for (const HashIndex::Claim& claim : claims) {
    if (claim.rivals.count == 0) continue;
    const auto write = std::find_if(writes_.begin(), writes_.end(), [&](const PendingWrite& candidate) {
      return candidate.table == number && candidate.fresh && candidate.record == claim.record;
    });
    const uint32_t key_bytes = table(number).description().key_bytes;
    sought_.push_back({.table = number, .key = {write->row, key_bytes}, .hash = claim.hash});
    for (const uint64_t rival : claim.rivals.view()) {
      const bool own = std::any_of(writes_.begin(), writes_.end(), [&](const PendingWrite& other) {
        return other.table == number && other.fresh && other.record == rival;
      });
      if (own) continue;
      readings_.push_back({.sought = static_cast<uint32_t>(sought_.size() - 1), .block = {.record = rival}});
    }
  }
  for (int round = 0; !readings_.empty(); ++round) {
    if (round == 100) return AbortStatus(AbortReason::kWriteWrite, "a row that never stands still");
    NAM_RETURN_IF_ERROR(ReadRound(sought_));
  }
  for (const SoughtRow& rival : sought_) {
    if (rival.state == SoughtRow::State::kNone) continue;
    return Conflict(rival.header, table(number).description().name);
  }
  return absl::OkStatus();
}

// Versions into their victims, keys of new rows into the indexes: both can be taken back.
absl::Status RsiSession::Install() {
  for (PendingWrite& write : writes_) write.indexed = write.fresh;  // RollBack takes away what is there
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (!claims_[number].empty()) NAM_RETURN_IF_ERROR(table(number).index().AddClaims(claims_[number]));
  }
  for (PendingWrite& write : writes_) {
    if (write.fresh) continue;
    RecordTable& to = table(write.table);
    const bool deleted = write.kind == Kind::kDelete;
    *write.version() = VersionWord::Of(timestamp_, deleted, false).word();
    batch_.Write(reinterpret_cast<std::byte*>(write.version()), to.geometry().version_bytes(),
                 At(write.block, to.geometry().word_offset(write.victim)));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (claims_[number].empty()) continue;
    NAM_RETURN_IF_ERROR(table(number).index().FinishClaims(claims_[number]));
    NAM_RETURN_IF_ERROR(JudgeRivals(number, claims_[number]));
  }
  return absl::OkStatus();
}

absl::Status RsiSession::Flip() {
  if (options_.broken.visible_early) {
    NAM_RETURN_IF_ERROR(timestamps_->AddDone(batch_, timestamp_));
    NAM_RETURN_IF_ERROR(batch_.Execute());
  }
  for (PendingWrite& write : writes_) {
    batch_.CompareAndSwap(write.block, write.header.LockedBy(slot_.client).word(),
                          RecordHeader::Unlocked(timestamp_).word(), write.old);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (const PendingWrite& write : writes_) {
    if (*write.old == write.header.LockedBy(slot_.client).word()) continue;
    return absl::InternalError("a lock was taken away: this client was believed to be gone");
  }
  return absl::OkStatus();
}

// Keys first, then records, then the timestamp, which no row carries.
absl::Status RsiSession::RollBack() {
  NAM_RETURN_IF_ERROR(RemoveEntered());
  std::vector<HashIndex::Removal> removals;
  for (uint32_t number = 0; number < tables_open_.size(); ++number) {
    removals.clear();
    for (const PendingWrite& write : writes_) {
      if (write.indexed && write.table == number) {
        removals.push_back({.hash = write.hash, .record = write.record});
      }
    }
    if (!removals.empty()) NAM_RETURN_IF_ERROR(table(number).index().Remove(removals));
  }
  for (PendingWrite& write : writes_) {
    if (*write.old != write.header.word()) continue;  // not locked by us
    const RecordHeader locked = write.header.LockedBy(slot_.client);
    const RecordHeader to = write.fresh ? RecordHeader() : write.header.RolledBack();
    batch_.CompareAndSwap(write.block, locked.word(), to.word(), Word(batch_));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  if (timestamp_ != 0) NAM_RETURN_IF_ERROR(timestamps_->AddDone(batch_, timestamp_));
  return batch_.Execute();
}

// Somebody else was faster. If he is gone, End has him cleaned up after, so that the next try succeeds.
absl::Status RsiSession::Conflict(RecordHeader found, const std::string& name) {
  const bool held = found.locked() && found.client() != slot_.client;
  if (held) suspect_ = found.client();
  lost_to_locks_ = held ? lost_to_locks_ + 1 : 0;
  conflict_ = std::max(conflict_, found.timestamp());
  return AbortStatus(AbortReason::kWriteWrite, absl::StrCat("a row of ", name));
}

// For tests: whatever version is there is replaced.
absl::Status RsiSession::LockBlindly() {
  for (PendingWrite& write : writes_) {
    while (*write.old != write.header.word() && !RecordHeader(*write.old).locked() && !write.fresh) {
      RecordTable& to = table(write.table);
      write.header = RecordHeader(*write.old);
      BlockRead read{.record = write.record};
      NAM_RETURN_IF_ERROR(to.AddRead(read));
      NAM_RETURN_IF_ERROR(
          to.AddLock(write.record, write.header, write.header.LockedBy(slot_.client), write.old));
      NAM_RETURN_IF_ERROR(batch_.Execute());
      to.Take(read);
      write.victim = storage::VictimSlot(read.version_words(to.geometry()), write.header.timestamp());
    }
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
