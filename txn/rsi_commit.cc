#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/checksum.h"
#include "txn/rsi_transaction.h"

/// The commit, one round trip after the other:
///
///     PrepareInserts   where their keys may be already             only if there are inserts
///     Announce         log entry; a timestamp is asked for
///     Lock             every record by CAS; the timestamp is claimed; new rows are written
///     ClaimKeys        keys of new rows into the indexes           only if there are inserts
///     Install          payloads into victims
///     ClaimIndexEntries  new keys into the ordered indexes         only if the tables have some
///     Flip             headers by CAS: from here on it has happened
///     AddDone          visible, once all clients see it done
///
/// Until Flip everything can be taken back, and RollBack does. docs/design/transactions.md.
namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;
using Kind = PendingWrite::Kind;

constexpr int kClaimsMax = 1'000;

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
  if (absl::Status status = PrepareInserts(); !status.ok()) return End(status);
  if (absl::Status status = Announce(); !status.ok()) return End(status);
  locking_ = true;
  absl::Status status = Lock();
  if (status.ok()) status = CheckIndexChanges();
  if (status.ok()) status = ClaimKeys();
  if (status.ok()) status = Install();
  if (status.ok()) status = ClaimIndexEntries();
  if (!status.ok()) {
    if (!AbortReasonOf(status).has_value() && !absl::IsResourceExhausted(status)) return End(status);
    if (absl::Status undone = RollBack(); !undone.ok()) return End(undone);
    locking_ = false;
    return End(status);
  }
  if (absl::Status flipped = Flip(); !flipped.ok()) return End(flipped);
  if (!options_.broken.visible_early) {
    if (absl::Status done = timestamps_->AddDone(batch_, timestamp_); !done.ok()) return End(done);
  }
  locking_ = false;
  last_commit_ = timestamp_;
  NAM_RETURN_IF_ERROR(End(absl::OkStatus()));
  return last_commit_;
}

// A row with the key of an insert: one that was deleted gets a new version, any other is in the way.
absl::Status RsiSession::PrepareInserts() {
  sought_.clear();
  for (const PendingWrite& write : writes_) {
    if (write.placed) continue;
    const uint32_t key_bytes = table(write.table).description().key_bytes;
    sought_.push_back({.table = write.table, .key = {write.row, key_bytes}, .hash = write.hash});
  }
  if (sought_.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Find(sought_));
  size_t next = 0;
  for (PendingWrite& write : writes_) {
    if (write.placed) continue;
    const SoughtRow& found = sought_[next++];
    const std::string& name = table(write.table).description().name;
    switch (found.state) {
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
        write.fresh = false;
        write.record = found.record;
        write.header = found.header;
        write.victim = found.victim;
        break;
      case SoughtRow::State::kNone: {
        NAM_ASSIGN_OR_RETURN(write.record, table(write.table).allocator().Allocate(batch_));
        break;
      }
    }
    write.placed = true;
  }
  return absl::OkStatus();
}

absl::Status RsiSession::Announce() {
  if (writes_.size() > kLogEntriesMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("a transaction writes at most %d rows", kLogEntriesMax));
  }
  const size_t bytes = sizeof(LogHeader) + writes_.size() * sizeof(LogEntry);
  std::byte* const log = batch_.Scratch(bytes);
  LogHeader header{.entries = writes_.size()};
  std::byte* at = log + sizeof(header);
  for (const PendingWrite& write : writes_) {
    const LogEntry entry{.allocation = table(write.table).description().allocation.value(),
                         .record = write.record | (write.fresh ? LogEntry::kInsert : 0),
                         .header = write.header.word(),
                         .key_hash = write.hash};
    std::memcpy(at, &entry, sizeof(entry));
    at += sizeof(entry);
  }
  std::memcpy(log, &header, sizeof(header));
  header.checksum = storage::Checksum({log + sizeof(header.checksum), bytes - sizeof(header.checksum)});
  std::memcpy(log, &header.checksum, sizeof(header.checksum));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, state_.Resolve(geometry_.log(slot_.client)));
  batch_.Write(log, static_cast<uint32_t>(bytes), target);
  NAM_RETURN_IF_ERROR(timestamps_->AddTake(batch_));
  return batch_.Execute();
}

absl::Status RsiSession::Lock() {
  NAM_RETURN_IF_ERROR(timestamps_->AddClaim(batch_));
  NAM_RETURN_IF_ERROR(AddReadIndexChanges());
  for (PendingWrite& write : writes_) {
    RecordTable& to = table(write.table);
    write.old = Word(batch_);
    NAM_RETURN_IF_ERROR(
        to.AddLock(write.record, write.header, write.header.LockedBy(slot_.client), write.old));
    if (!write.fresh) continue;
    // The words of all slots, since the block may have held another row; and the row, in slot 0.
    const uint32_t words_bytes = to.geometry().words_bytes() - 8;
    std::byte* const words = batch_.Scratch(words_bytes);
    std::memset(words, 0, words_bytes);
    write.version = reinterpret_cast<uint64_t*>(words);
    *write.version = VersionWord::Of(timestamps_->taken(), false, true).word();
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, to.Block(write.record));
    batch_.Write(words, words_bytes, At(block, 8));
    batch_.Write(write.row, to.geometry().row_bytes, At(block, to.geometry().slot_offset(0)));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(ClaimTimestamp());
  if (options_.broken.blind_locks) NAM_RETURN_IF_ERROR(LockBlindly());
  for (const PendingWrite& write : writes_) {
    if (*write.old == write.header.word()) continue;
    if (!write.fresh) return Conflict(RecordHeader(*write.old), table(write.table).description().name);
    return absl::InternalError(absl::StrFormat("record %d of table %s was to be free, but its header is %x",
                                               write.record, table(write.table).description().name,
                                               *write.old));
  }
  return absl::OkStatus();
}

// Whoever was held up has skipped ours: another one, which the new rows then carry.
absl::Status RsiSession::ClaimTimestamp() {
  for (int i = 0; !timestamps_->claimed(); ++i) {
    if (i == kClaimsMax) return absl::UnavailableError("the ring of timestamps is full: a commit hangs");
    NAM_RETURN_IF_ERROR(timestamps_->AddTake(batch_));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    NAM_RETURN_IF_ERROR(timestamps_->AddClaim(batch_));
    NAM_RETURN_IF_ERROR(AddReadIndexChanges());
    for (const PendingWrite& write : writes_) {
      if (!write.fresh || *write.old != 0) continue;
      *write.version = VersionWord::Of(timestamps_->taken(), false, true).word();
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table(write.table).Block(write.record));
      batch_.Write(reinterpret_cast<std::byte*>(write.version), 8, At(block, 8));
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
  }
  timestamp_ = timestamps_->taken();
  return absl::OkStatus();
}

absl::Status RsiSession::ClaimKeys() {
  for (uint32_t number = 0; number < tables_open_.size(); ++number) {
    claims_.clear();
    for (PendingWrite& write : writes_) {
      if (!write.fresh || write.table != number) continue;
      claims_.push_back({.hash = write.hash, .record = write.record});
      write.indexed = true;  // perhaps; RollBack takes away what is there
    }
    if (claims_.empty()) continue;
    NAM_RETURN_IF_ERROR(table(number).index().Insert(claims_));
    NAM_RETURN_IF_ERROR(JudgeRivals(number, claims_));
  }
  return absl::OkStatus();
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

absl::Status RsiSession::Install() {
  if (options_.broken.visible_early) {
    NAM_RETURN_IF_ERROR(timestamps_->AddDone(batch_, timestamp_));
    NAM_RETURN_IF_ERROR(batch_.Execute());
  }
  for (PendingWrite& write : writes_) {
    if (write.fresh) continue;
    RecordTable& to = table(write.table);
    const bool deleted = write.kind == Kind::kDelete;
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, to.Block(write.record));
    write.version = Word(batch_);
    *write.version = VersionWord::Of(timestamp_, deleted, false).word();
    batch_.Write(reinterpret_cast<std::byte*>(write.version), 8,
                 At(block, storage::RecordGeometry::word_offset(write.victim)));
    batch_.Write(write.row, to.geometry().row_bytes, At(block, to.geometry().slot_offset(write.victim)));
  }
  return batch_.Execute();
}

absl::Status RsiSession::Flip() {
  for (PendingWrite& write : writes_) {
    NAM_RETURN_IF_ERROR(table(write.table)
                            .AddLock(write.record, write.header.LockedBy(slot_.client),
                                     RecordHeader::Unlocked(timestamp_), write.old));
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
    NAM_RETURN_IF_ERROR(table(write.table).AddLock(write.record, locked, to, Word(batch_)));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  if (timestamp_ != 0) NAM_RETURN_IF_ERROR(timestamps_->AddDone(batch_, timestamp_));
  return batch_.Execute();
}

// Somebody else was faster. If he is gone, End has him cleaned up after, so that the next try succeeds.
absl::Status RsiSession::Conflict(RecordHeader found, const std::string& name) {
  if (found.locked() && found.client() != slot_.client) suspect_ = found.client();
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
      write.victim = storage::VictimSlot(read.version_words(to.geometry()), write.header.timestamp());
    }
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
