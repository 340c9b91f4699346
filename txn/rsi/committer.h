#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "txn/index/hash_index.h"
#include "txn/rsi/index_keeper.h"
#include "txn/rsi/lock_wait.h"
#include "txn/rsi/referenced_rows.h"
#include "txn/rsi/row_reader.h"
#include "txn/rsi/session_core.h"

namespace nam::txn {

/// Commits the transaction's writes, one round trip after the other:
///
///     Announce       log entry; a timestamp is asked for; whether the keys of inserts exist
///     LockRecords    the slot's word and the ring's entry are claimed; existing records are locked by CAS;
///                    new rows are written, locked
///     Install        payloads into victims; keys of new rows into the hash indexes
///     ClaimEntries   new keys into the ordered indexes, if any (IndexKeeper)
///     Check          whether foreign keys still need what is deleted (ReferencedRows)
///     Decide         the slot's word by CAS: from here on it has happened, and the caller is told
///     AddFlips       headers by CAS; records that were only locked get back their old timestamps
///     AddDone        the ring's entry
///
/// No client waits for the last two: one that meets a lock asks the slot. The next transaction's first round
/// trip confirms them, before the log is overwritten and the slot leaves the timestamp.
///
/// A claim hides all later commits until it is decided. So a commit of many rows prepares first, and takes
/// its timestamp when all but its versions' words is written:
///
///     slot       over ──▶ preparing ───────────────────────────────────▶ claimed(T) ──────▶ committing(T)
///     rows             locked ─▶ payloads, words `pending`               words T            headers T
///     indexes                     ─▶ keys, entries, looks for rivals
///     ring                                                               T: claimed         T: done
///     hides later commits                                                └──────────────────┘
///
///  - Readers pass over `pending` words: they are above all snapshots and belong to a locked record.
///  - It works in portions, between which the slot's word moves (SessionCore::GoOn).
///  - Whoever changes an index counts and waits for slots that say preparing or claimed. The change of the
///    word from one to the other looks to it as if the transaction was over; so the count is READ again
///    behind the claim. If it has changed, new indexes get entries, those that were dropped are forgotten,
///    and foreign keys are looked at again.
///  - What was judged before had no timestamp to be compared with; so T must be above all that was met.
///
/// Until Decide RollBack can undo everything. docs/design/transactions.md.
class Committer {
 public:
  Committer(SessionCore& core, RowReader& reader, IndexKeeper& indexes, ReferencedRows& references,
            LockWait& wait)
      : core_(core),
        reader_(reader),
        indexes_(indexes),
        references_(references),
        wait_(wait),
        options_(core.options),
        channel_(core.channel.get()),
        batch_(core.batch),
        slot_(core.slot),
        log_(core.log.get()),
        commit_point_(core.commit_point.get()),
        timestamps_(core.timestamps.get()),
        writes_(core.transaction.writes),
        transaction_(core.transaction) {}

  /// After an error transaction.locking says whether recovery may have work, and transaction.committed
  /// whether the commit has happened.
  absl::Status Commit();

 private:
  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status Try();
  absl::Status PlaceInserts();
  absl::Status SeekKeys();
  absl::Status Announce();
  absl::Status AddLog();
  absl::Status JudgeSought();
  absl::Status TakeOverDeleted();
  absl::Status Write();
  absl::Status MakeEntries();
  absl::Status Prepare();
  absl::Status TakeTimestamp();
  absl::Status WriteTimestamps();
  absl::Status CheckTimestampsLeft() const;
  absl::Status ShowEarly();
  absl::Status LockRecords();
  absl::Status JudgeLocks();
  absl::Status AddNewRows();
  absl::Status AddLocks();
  absl::Status FinishPortion();
  absl::Status ClaimTimestamp(bool rows_written);
  absl::Status Install();
  absl::Status JudgeRivals(uint32_t table, std::span<const HashIndex::Claim> claims);
  /// The timestamp that versions are written with.
  uint64_t VersionTimestamp() const;
  absl::StatusOr<bool> Decide();
  absl::Status AddFlips();
  absl::Status NoteWrites();
  absl::Status RollBack();
  absl::Status LockBlindly();

  SessionCore& core_;
  RowReader& reader_;
  IndexKeeper& indexes_;
  ReferencedRows& references_;
  LockWait& wait_;
  const RsiOptions& options_;
  storage::Channel* const channel_;
  storage::VerbBatch& batch_;
  const ClientSlot& slot_;
  ClientLog* const log_;
  CommitPoint* const commit_point_;
  Timestamps* const timestamps_;
  WriteSet& writes_;
  RsiTransaction& transaction_;

  bool prepares_ = false;      // this try takes its timestamp last
  bool installed_ = false;     // versions are in their victims, or in flight
  size_t commit_scratch_ = 0;  // in use before a try
  /// Writes that this try has not locked, by place, and the headers that it found: another client has locked
  /// and released the record since it was read, and has not changed it.
  std::vector<std::pair<size_t, storage::RecordHeader>> released_;
  // Kept for their memory.
  std::vector<std::vector<HashIndex::Claim>> claims_;  // by table: the inserts under way
  std::vector<SoughtRow> sought_;
  std::vector<RowReader::Candidate> candidates_;
};

}  // namespace nam::txn
