#include "txn/rsi/committer.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;

constexpr int kRivalRoundsMax = 100;
constexpr uint32_t kReleasesMax = 16;  // locks of other clients that a commit without waits meets too late
constexpr uint32_t kWriteBytesMax = 64 * 1024;
/// Writes between two moves of the slot's word; so many more follow their claim.
constexpr size_t kWritesAtOnce = 256;

storage::Channel::Target At(storage::Channel::Target block, uint64_t offset) {
  block.address.offset += offset;
  return block;
}

}  // namespace

// A try that has met another client's lock, or was passed over, has given back its locks, its claim and its
// timestamp. So it may wait, and try again. It need not wait for locks that are gone.
absl::Status Committer::Commit() {
  commit_scratch_ = batch_.scratch_used();
  wait_.Restart();
  uint32_t skips = 0, releases = 0;
  for (uint32_t tries = 1;; ++tries) {
    const absl::Status status = Try();
    if (status.ok() || transaction_.locking) return status;
    const bool skipped = AbortReasonOf(status) == AbortReason::kSkipped && skips++ < options_.skips_retried;
    const bool released = !released_.empty() && releases++ < kReleasesMax;
    absl::Status again = status;
    if ((skipped || released) && !Interruption::requested()) {
      again = batch_.Execute();
      if (again.ok()) batch_.Reset(commit_scratch_);
      for (const auto& [place, header] : released_) writes_[place].header = header;
    } else if (wait_.waits() && core_.conflicts.met_lock.has_value()) {
      again = wait_.AwaitMetLock(tries);
      if (again.ok()) batch_.Reset(commit_scratch_);
    }
    if (!again.ok()) return again;
  }
}

absl::Status Committer::Try() {
  transaction_.timestamp = 0;
  transaction_.newest_judged = 0;
  prepares_ = writes_.size() > kWritesAtOnce;
  core_.conflicts.met_lock.reset();
  released_.clear();
  NAM_RETURN_IF_ERROR(PlaceInserts());
  NAM_RETURN_IF_ERROR(Announce());
  if (!prepares_) NAM_RETURN_IF_ERROR(CheckTimestampsLeft());
  if (absl::Status status = JudgeSought(); !status.ok()) {
    if (!prepares_) NAM_RETURN_IF_ERROR(timestamps_->AddSkip(batch_));
    return status;
  }
  transaction_.locking = true;
  installed_ = false;
  absl::Status status = Write();
  transaction_.writing = false;
  if (status.ok()) {
    NAM_ASSIGN_OR_RETURN(const bool decided, Decide());
    if (!decided) {
      status = AbortStatus(AbortReason::kSkipped, "this commit stalled, and another client skipped it");
    }
  }
  if (!status.ok()) {
    if (!AbortReasonOf(status).has_value() && !absl::IsResourceExhausted(status)) return status;
    NAM_RETURN_IF_ERROR(RollBack());
    transaction_.locking = false;
    return status;
  }
  NAM_RETURN_IF_ERROR(AddFlips());
  NAM_RETURN_IF_ERROR(NoteWrites());
  transaction_.flipping = true;
  transaction_.locking = false;
  return absl::OkStatus();
}

// Runs all steps before the decision.
absl::Status Committer::Write() {
  if (prepares_) NAM_RETURN_IF_ERROR(Prepare());
  NAM_RETURN_IF_ERROR(LockRecords());
  NAM_RETURN_IF_ERROR(indexes_.CheckChanges());
  NAM_RETURN_IF_ERROR(Install());
  NAM_RETURN_IF_ERROR(MakeEntries());
  // Cleaning may fail without failing this commit, unless the channel is broken.
  const absl::Status cleaned = indexes_.Clean();
  if (channel_->broken()) return cleaned;
  // What may fail so, as unlinking leaves and telling their parents, may have seen that another client has
  // skipped this commit.
  NAM_RETURN_IF_ERROR(core_.GoOn());
  if (!prepares_) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(TakeTimestamp());
  return core_.GoOn();
}

absl::Status Committer::MakeEntries() {
  NAM_RETURN_IF_ERROR(indexes_.ClaimEntries());
  return references_.Check();
}

// Who changes an index counts first, and then looks for clients that prepare or have claimed. So the count is
// READ behind the slot's word.
absl::Status Committer::Prepare() {
  NAM_RETURN_IF_ERROR(commit_point_->AddPrepare(batch_));
  NAM_RETURN_IF_ERROR(indexes_.AddReadChanges());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(commit_point_->Claimed());
  transaction_.writing = true;
  return core_.GoOn();
}

absl::Status Committer::TakeTimestamp() {
  NAM_RETURN_IF_ERROR(timestamps_->AddTake(batch_));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(CheckTimestampsLeft());
  commit_point_->Expect(writes_.size());
  NAM_RETURN_IF_ERROR(timestamps_->AddClaim(batch_));
  NAM_RETURN_IF_ERROR(indexes_.AddReadChanges());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(ClaimTimestamp(/*rows_written=*/false));
  if (transaction_.newest_judged > transaction_.timestamp) {
    core_.conflicts.newest = std::max(core_.conflicts.newest, transaction_.newest_judged);
    return AbortStatus(AbortReason::kWriteWrite, "a row that this commit has judged was changed later");
  }
  if (!indexes_.unchanged()) {
    NAM_RETURN_IF_ERROR(indexes_.CheckChanges());
    NAM_RETURN_IF_ERROR(MakeEntries());
  }
  NAM_RETURN_IF_ERROR(ShowEarly());
  return WriteTimestamps();
}

// New rows are written once more, since adjacent ones share a WRITE.
absl::Status Committer::WriteTimestamps() {
  size_t added = 0;
  for (PendingWrite& write : writes_) {
    if (write.only_locks()) continue;
    const bool deleted = write.kind == PendingWrite::Kind::kDelete;
    *write.version() = VersionWord::Of(transaction_.timestamp, deleted, write.fresh).word();
    if (write.fresh) continue;
    if (++added % kWritesAtOnce == 0) NAM_RETURN_IF_ERROR(FinishPortion());
    batch_.Write(reinterpret_cast<std::byte*>(write.version()), 8,
                 At(write.block, table(write.table).geometry().word_offset(write.victim)));
  }
  NAM_RETURN_IF_ERROR(AddNewRows());
  return batch_.Execute();
}

absl::Status Committer::CheckTimestampsLeft() const {
  if (timestamps_->taken() < storage::kPendingTimestamp) return absl::OkStatus();
  return absl::ResourceExhaustedError("the cluster has no timestamps left: they have 48 bits");
}

// For tests.
absl::Status Committer::ShowEarly() {
  if (!options_.broken.visible_early) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(timestamps_->AddDone(batch_, transaction_.timestamp));
  return batch_.Execute();
}

uint64_t Committer::VersionTimestamp() const {
  return prepares_ ? storage::kPendingTimestamp : timestamps_->taken();
}

absl::StatusOr<bool> Committer::Decide() {
  const Interruption none(nullptr);  // the commit is irrevocable
  transaction_.phase = RsiTransaction::Phase::kDeciding;
  NAM_ASSIGN_OR_RETURN(transaction_.committed, commit_point_->Commit(batch_));
  transaction_.phase =
      transaction_.committed ? RsiTransaction::Phase::kCommitted : RsiTransaction::Phase::kUndecided;
  if (transaction_.committed) core_.conflicts.lost_to_locks = 0;
  return transaction_.committed;
}

// Notes blocks that may become free later, and index entries that die.
absl::Status Committer::NoteWrites() {
  for (const PendingWrite& write : writes_) {
    if (write.only_locks()) continue;
    if (write.kind == PendingWrite::Kind::kDelete) {
      NAM_RETURN_IF_ERROR(table(write.table).allocator().AddDeleted(batch_, write.record));
      continue;
    }
    const std::byte* const before = write.before != nullptr ? write.before : write.dead_row;
    if (before != nullptr)
      indexes_.NoteDead(write.table, write.record, before, write.row, transaction_.timestamp);
  }
  return absl::OkStatus();
}

// Allocates a record for every insert, as if its key were new. The same round trip READs whether it is.
absl::Status Committer::PlaceInserts() {
  for (PendingWrite& write : writes_) {
    if (write.placed) continue;
    NAM_ASSIGN_OR_RETURN(write.record, table(write.table).allocator().Allocate(batch_));
    write.placed = true;
    NAM_ASSIGN_OR_RETURN(write.block, table(write.table).Block(write.record));
  }
  return SeekKeys();
}

// Shares the announcement's round trip, unless the keys are many. Statements have kept scratch memory for it.
absl::Status Committer::SeekKeys() {
  claims_.resize(core_.open.size());
  for (std::vector<HashIndex::Claim>& claims : claims_) claims.clear();
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    claims_[write.table].emplace_back(write.hash, write.record);
  }
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (!claims_[number].empty()) NAM_RETURN_IF_ERROR(table(number).index().AddSeek(claims_[number]));
  }
  return absl::OkStatus();
}

// Nearly always no entry resembles the keys of the inserts. Otherwise looks up rows, and announces again.
absl::Status Committer::JudgeSought() {
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

// Handles existing rows with the key of an insert: a deleted one gets a new version, any other conflicts.
// Judges all before it takes over the first record: a commit that meets a lock here forgets what it has READ,
// and tries again with all of its inserts.
absl::Status Committer::TakeOverDeleted() {
  sought_.clear();
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    const uint32_t key_bytes = table(write.table).description().key_bytes;
    sought_.push_back({.table = write.table, .key = {write.row, key_bytes}, .hash = write.hash});
  }
  const size_t kept = batch_.scratch_used();
  NAM_RETURN_IF_ERROR(reader_.Find(sought_));
  bool any_deleted = false;
  for (const SoughtRow& found : sought_) {
    if (found.state == SoughtRow::State::kNone) continue;
    if (found.state == SoughtRow::State::kVisible) {
      return AbortStatus(AbortReason::kUniqueKey,
                         absl::StrCat("a row of ", table(found.table).description().name, " has this key"));
    }
    const bool deleted = found.state == SoughtRow::State::kDeleted && !found.header.locked() &&
                         found.header.timestamp() == found.version.timestamp();
    if (!deleted) return core_.Conflict(found.header, found.table, found.record);
    any_deleted = true;
  }
  if (!any_deleted) {
    batch_.Reset(kept);
    return absl::OkStatus();
  }
  size_t next = 0;
  for (PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    const SoughtRow& found = sought_[next++];
    if (found.state == SoughtRow::State::kNone) continue;
    NAM_RETURN_IF_ERROR(table(write.table).allocator().AddFree(batch_, write.record));
    write.fresh = false;
    write.record = found.record;
    NAM_ASSIGN_OR_RETURN(write.block, table(write.table).Block(write.record));
    write.header = found.header;
    write.victim = found.victim;
    write.dead_row = found.row;
  }
  writes_.ForgetRecords();
  commit_scratch_ = batch_.scratch_used();  // with the dead rows
  return absl::OkStatus();
}

absl::Status Committer::Announce() {
  NAM_RETURN_IF_ERROR(AddLog());
  if (!prepares_) NAM_RETURN_IF_ERROR(timestamps_->AddTake(batch_));
  return batch_.Execute();
}

absl::Status Committer::AddLog() {
  NAM_ASSIGN_OR_RETURN(LogEncoder log, log_->Start(writes_.size() * LoggedBytes(0)));
  for (const PendingWrite& write : writes_) {
    const uint64_t kind = write.fresh ? LogEntry::kInsert : write.only_locks() ? LogEntry::kOnlyLock : 0;
    const LogEntry entry{.allocation = table(write.table).description().allocation.value(),
                         .record = write.record | kind,
                         .header = write.header.word(),
                         .key_hash = write.hash};
    log.Add(entry, nullptr);
  }
  return log_->AddWrites(log);
}

// Claims before it READs the count of index changes, unless Prepare has done so. The words of records that no
// request reaches say `not locked`.
absl::Status Committer::LockRecords() {
  uint64_t* old = batch_.Words(writes_.size());
  for (PendingWrite& write : writes_) {
    write.old = old++;
    *write.old = ~write.header.word();
  }
  if (!prepares_) {
    commit_point_->Expect(writes_.size());
    NAM_RETURN_IF_ERROR(timestamps_->AddClaim(batch_));
    NAM_RETURN_IF_ERROR(indexes_.AddReadChanges());
  }
  NAM_RETURN_IF_ERROR(AddLocks());
  NAM_RETURN_IF_ERROR(AddNewRows());
  NAM_RETURN_IF_ERROR(batch_.Execute());
  if (!prepares_) NAM_RETURN_IF_ERROR(ClaimTimestamp(/*rows_written=*/true));
  if (options_.broken.blind_locks) NAM_RETURN_IF_ERROR(LockBlindly());
  return JudgeLocks();
}

// If a lock was released since a row was read, the row is unchanged, and another try may lock it: with
// another timestamp, since that of the lock's holder may be above this one.
absl::Status Committer::JudgeLocks() {
  for (size_t place = 0; place < writes_.size(); ++place) {
    const PendingWrite& write = writes_[place];
    if (*write.old == write.header.word()) continue;
    const RecordHeader found(*write.old);
    if (found.locked() || found.timestamp() != write.header.timestamp()) {
      released_.clear();
      return core_.Conflict(found, write.table, write.record);
    }
    released_.emplace_back(place, found);
  }
  if (released_.empty()) return absl::OkStatus();
  const auto& [place, header] = released_.front();
  core_.conflicts.met_lock = {writes_[place].table, writes_[place].record};
  return core_.Conflict(header, writes_[place].table, writes_[place].record);
}

// What is only added takes no time, so it says nothing of whether the commit goes on.
absl::Status Committer::FinishPortion() {
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return core_.GoOn();
}

absl::Status Committer::AddLocks() {
  size_t added = 0;
  for (PendingWrite& write : writes_) {
    const RecordHeader locked = write.header.LockedBy(slot_.client);
    if (!write.fresh) {
      batch_.CompareAndSwap(write.block, write.header.word(), locked.word(), write.old);
      if (++added % kWritesAtOnce == 0 && prepares_) NAM_RETURN_IF_ERROR(FinishPortion());
      continue;
    }
    uint64_t* const words = write.version() - 1;
    words[0] = locked.word();
    words[1] = VersionWord::Of(VersionTimestamp(), false, true).word();
    *write.old = write.header.word();
  }
  return absl::OkStatus();
}

// Only this client has these records: it needs no CAS, and writes the header with slot 0 behind it. The other
// slots are empty. One statement's rows are mostly adjacent in both memories: one WRITE covers all of them.
absl::Status Committer::AddNewRows() {
  size_t next = kWritesAtOnce;
  for (size_t i = 0; i < writes_.size();) {
    if (i >= next) {
      NAM_RETURN_IF_ERROR(FinishPortion());
      next = i + kWritesAtOnce;
    }
    const PendingWrite& first = writes_[i++];
    if (!first.fresh) continue;
    const RecordTable& to = table(first.table);
    const uint32_t block_bytes = to.geometry().block_bytes();
    uint32_t ahead = 0;  // from the first block to the last
    const auto follows = [&](const PendingWrite& next) {
      const fabric::RemoteAddress& here = first.block.address;
      const fabric::RemoteAddress& there = next.block.address;
      return next.fresh && next.table == first.table && next.row == first.row + ahead + block_bytes &&
             next.block.queue_pair == first.block.queue_pair && there.rkey == here.rkey &&
             there.offset == here.offset + ahead + block_bytes;
    };
    while (to.WritesWholeBlocks() && ahead < kWriteBytesMax && i < writes_.size() && follows(writes_[i])) {
      ahead += block_bytes;
      ++i;
    }
    const uint32_t row_offset = to.geometry().row_offset(0);
    batch_.Write(first.row - row_offset, ahead + row_offset + to.geometry().row_bytes, first.block);
  }
  return absl::OkStatus();
}

// If the timestamp has changed, WRITEs it into the new rows, unless they are not there yet.
absl::Status Committer::ClaimTimestamp(bool rows_written) {
  NAM_ASSIGN_OR_RETURN(const bool as_taken, timestamps_->ConfirmClaim(batch_));
  transaction_.timestamp = timestamps_->taken();
  transaction_.writing = true;
  if (as_taken) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(indexes_.AddReadChanges());
  if (!rows_written) return batch_.Execute();
  for (const PendingWrite& write : writes_) {
    if (!write.fresh) continue;
    *write.version() = VersionWord::Of(transaction_.timestamp, false, true).word();
    batch_.Write(reinterpret_cast<std::byte*>(write.version()), 8,
                 At(write.block, table(write.table).geometry().word_offset(0)));
  }
  return batch_.Execute();
}

// Checks other records whose keys look alike. An earlier look-up did not find them, so the same key belongs
// to a newcomer.
absl::Status Committer::JudgeRivals(uint32_t number, std::span<const HashIndex::Claim> claims) {
  candidates_.clear();
  sought_.clear();
  for (const HashIndex::Claim& claim : claims) {
    if (claim.rivals.count == 0) continue;
    const PendingWrite* const write = writes_.OfRecord(number, claim.record);
    const uint32_t key_bytes = table(number).description().key_bytes;
    sought_.push_back({.table = number, .key = {write->row, key_bytes}, .hash = claim.hash});
    for (const uint64_t rival : claim.rivals.view()) {
      if (const PendingWrite* const own = writes_.OfRecord(number, rival); own != nullptr && own->fresh)
        continue;
      candidates_.push_back({.place = static_cast<uint32_t>(sought_.size() - 1), .record = rival});
    }
  }
  NAM_ASSIGN_OR_RETURN(const bool stood_still, reader_.ReadCandidates(sought_, candidates_, kRivalRoundsMax));
  if (!stood_still) return AbortStatus(AbortReason::kWriteWrite, "a row that keeps changing");
  for (const SoughtRow& rival : sought_) {
    if (rival.state == SoughtRow::State::kNone) continue;
    return core_.Conflict(rival.header, number, rival.record);
  }
  return absl::OkStatus();
}

// WRITEs versions into their victims and keys of new rows into the indexes. Both can be undone.
absl::Status Committer::Install() {
  if (!prepares_) NAM_RETURN_IF_ERROR(ShowEarly());
  installed_ = true;
  for (PendingWrite& write : writes_) write.indexed = write.fresh;  // RollBack removes existing ones
  for (uint32_t number = 0; number < claims_.size(); ++number) {
    if (claims_[number].empty()) continue;
    NAM_RETURN_IF_ERROR(table(number).index().AddClaims(claims_[number]));
  }
  size_t added = 0;
  for (PendingWrite& write : writes_) {
    if (write.fresh || write.only_locks()) continue;
    if (++added % kWritesAtOnce == 0) NAM_RETURN_IF_ERROR(FinishPortion());
    RecordTable& to = table(write.table);
    const bool deleted = write.kind == PendingWrite::Kind::kDelete;
    *write.version() = VersionWord::Of(VersionTimestamp(), deleted, false).word();
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

// Another client that met a lock may have flipped it first, and the next writer may already hold the record.
// A record that was only locked gets back its old timestamp with another rollback count: a client that took
// its own timestamp before this lock must not take the record behind it, since it would commit before this
// client.
absl::Status Committer::AddFlips() {
  for (const PendingWrite& write : writes_) {
    const RecordHeader to =
        write.only_locks() ? write.header.RolledBack() : RecordHeader::Unlocked(transaction_.timestamp);
    batch_.CompareAndSwap(write.block, write.header.LockedBy(slot_.client).word(), to.word(), write.old);
  }
  return options_.broken.visible_early ? absl::OkStatus()
                                       : timestamps_->AddDone(batch_, transaction_.timestamp);
}

// Undoes keys first, then records, then the slot's word, and at last the ring's entry, which no row carries.
absl::Status Committer::RollBack() {
  NAM_RETURN_IF_ERROR(indexes_.RemoveEntered());
  std::vector<HashIndex::Removal> removals;
  for (uint32_t number = 0; number < core_.open.size(); ++number) {
    removals.clear();
    for (const PendingWrite& write : writes_) {
      if (write.indexed && write.table == number) {
        removals.push_back({.hash = write.hash, .record = write.record});
      }
    }
    if (!removals.empty()) NAM_RETURN_IF_ERROR(table(number).index().Remove(removals));
  }
  for (PendingWrite& write : writes_) write.indexed = false;
  const auto* const empty = new (batch_.Scratch(8)) VersionWord();
  for (PendingWrite& write : writes_) {
    if (*write.old != write.header.word()) continue;  // not locked by us
    // A version under a client's lock is that client's: it must be gone before another can have the lock.
    if (write.fresh || (installed_ && !write.only_locks()))
      NAM_RETURN_IF_ERROR(
          table(write.table).AddEmptySlot(write.record, write.fresh ? 0 : write.victim, empty));
    const RecordHeader locked = write.header.LockedBy(slot_.client);
    const RecordHeader to = write.fresh ? RecordHeader() : write.header.RolledBack();
    batch_.CompareAndSwap(write.block, locked.word(), to.word(), write.old);
    write.header = to;
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(commit_point_->GiveUp(batch_));
  const bool done_early = options_.broken.visible_early && installed_;
  return transaction_.timestamp == 0 || done_early ? absl::OkStatus()
                                                   : timestamps_->AddDone(batch_, transaction_.timestamp);
}

// For tests: replaces any version.
absl::Status Committer::LockBlindly() {
  for (PendingWrite& write : writes_) {
    while (*write.old != write.header.word() && !RecordHeader(*write.old).locked() && !write.fresh) {
      RecordTable& to = table(write.table);
      write.header = RecordHeader(*write.old);
      BlockRead read{.record = write.record};
      NAM_RETURN_IF_ERROR(to.AddRead(read));
      NAM_RETURN_IF_ERROR(
          to.AddLock(write.record, write.header, write.header.LockedBy(slot_.client), write.old));
      NAM_RETURN_IF_ERROR(batch_.Execute());
      to.CopyWords(read);
      write.victim = storage::VictimSlot(read.version_words(to.geometry()), write.header.timestamp());
    }
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
