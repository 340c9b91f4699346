#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/record_block.h"
#include "storage/verb_batch.h"
#include "txn/rsi/client_log.h"
#include "txn/rsi/reclaimer.h"
#include "txn/rsi/record_table.h"
#include "txn/rsi/recovery.h"
#include "txn/rsi/session.h"
#include "txn/rsi/write_set.h"
#include "txn/session.h"
#include "txn/snapshot_scan.h"
#include "txn/timestamps/client_slot.h"
#include "txn/timestamps/commit_point.h"
#include "txn/timestamps/timestamps.h"

namespace nam::txn {

class RsiSession final : public Session {
 public:
  /// Scratch memory that a commit takes for each write besides its row: log entry, words, and of an insert
  /// buckets of its key.
  static constexpr uint64_t kCommitBytes = 192, kInsertBytes = 448;

  /// A heir is what a lost session opens to be settled by. It does not have one itself.
  static absl::StatusOr<std::unique_ptr<RsiSession>> Open(Tables& tables, const RsiOptions& options,
                                                          bool is_heir);
  ~RsiSession() override;

  /// Of no more use than to be succeeded by another.
  bool lost() const { return !broken_.ok() || channel_->broken(); }
  absl::StatusOr<std::unique_ptr<RsiSession>> Succeed();
  /// A handle of a table that cannot be opened now: whatever uses it fails with `why`.
  TableHandle CloseTable(const absl::Status& why);
  bool IsOpen(TableHandle handle) const { return handle.value < tables_open_.size(); }
  AllocationId AllocationOf(TableHandle open) const {
    return tables_open_[open.value]->description().allocation;
  }

  absl::StatusOr<TableHandle> OpenTable(const std::string& name) override;
  absl::Status Begin() override;
  absl::Status Read(std::span<Lookup> lookups) override;
  absl::Status BeginAndRead(std::span<Lookup> lookups) override;
  absl::Status Scan(TableHandle table, const RowVisitor& visit) override;
  absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit) override;
  absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit) override;
  absl::Status Insert(TableHandle table, std::span<const std::byte> row) override;
  absl::Status Update(TableHandle table, std::span<const std::byte> row) override;
  absl::Status Delete(TableHandle table, std::span<const std::byte> key) override;
  absl::Status Lock(TableHandle table, std::span<const std::byte> key) override;
  void SetLockTimeout(int64_t us) override { lock_timeout_us_ = us; }
  void SetTransactionBytesMax(uint64_t bytes) override { options_.transaction_bytes_max = bytes; }
  absl::StatusOr<uint64_t> Commit() override;
  void Abort() override;
  size_t Mark() const override { return writes_.Mark(); }
  absl::Status RollBackTo(size_t mark) override;
  absl::Status MayWrite(size_t rows) const override;
  uint64_t snapshot() const override { return snapshot_; }
  BeginCosts begin_costs() const override { return begin_costs_; }
  absl::StatusOr<uint64_t> AwaitCommits() override;
  absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index) override;

 private:
  RsiSession(Tables& tables, const RsiOptions& options, std::shared_ptr<storage::Channel> channel,
             ExtentSpace state, std::shared_ptr<ExtentSource> logs, StateGeometry geometry, bool is_heir);

  // session.cc
  absl::Status CheckActive() const;
  absl::Status BeginWith(std::span<const SoughtRow> early);
  absl::Status TakeSnapshot(std::span<const SoughtRow> early);
  void AwaitLocks();
  absl::Status End(absl::Status status);
  absl::Status Leave();
  absl::StatusOr<RecordTable*> TableOf(const TableDescription& description);
  /// Its extents with keys of this session's member alone.
  /// That it is open, and its keys, or whole rows, have so many bytes.
  absl::Status CheckTable(TableHandle handle, size_t bytes, bool whole_row) {
    if (handle.value < tables_open_.size()) [[likely]] {
      const TableDescription& description = tables_open_[handle.value]->description();
      if (bytes == (whole_row ? description.row_bytes : description.key_bytes)) [[likely]]
        return absl::OkStatus();
    }
    return TableError(handle, bytes, whole_row);
  }
  absl::Status TableError(TableHandle handle, size_t bytes, bool whole_row);
  /// Of a handle beyond those that are open. Ends the transaction if that table was closed.
  absl::Status NotOpen(TableHandle handle);
  RecordTable& table(uint32_t number) { return *tables_open_[number]; }
  /// A write to a row that was read. `row`: what it becomes; empty: it keeps its bytes.
  absl::Status WriteKnown(PendingWrite::Kind kind, uint32_t table, uint64_t hash,
                          std::span<const std::byte> key, std::span<const std::byte> row);
  void FetchForUpdate(const PendingWrite& update);
  void FetchForInsert(const PendingWrite& insert);
  /// Of a row that is to be written; an error if that is one too many.
  absl::StatusOr<std::byte*> CopyRow(uint32_t table, std::span<const std::byte> row);
  /// So much more scratch memory, and what a commit will take, is within the transaction's bounds.
  absl::Status CheckScratch(uint64_t bytes) const;

  absl::StatusOr<uint32_t> Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                   std::vector<uint64_t>& freed);

  void Bury(const RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at);

  // read.cc
  struct Reading {
    uint32_t sought = 0;
    BlockRead block;
  };
  absl::Status Seek(std::span<const Lookup> lookups);
  absl::Status Deliver(std::span<Lookup> lookups);
  absl::Status Find(std::span<SoughtRow> sought);
  absl::Status FindInRounds(std::span<SoughtRow> sought);
  absl::Status AddLookUp(std::span<const SoughtRow> sought);
  bool LookedUp();
  void TakeCandidates(std::span<const SoughtRow> sought, size_t first);
  absl::Status LookUp(std::span<const SoughtRow> sought);
  absl::Status ReadCandidates(std::span<SoughtRow> sought);
  absl::Status ReadRound(std::span<SoughtRow> sought);
  absl::Status ReadSlots(std::span<SoughtRow> sought);
  absl::Status HelpHolders(std::span<const SoughtRow> sought);
  bool Settle(SoughtRow& sought, const BlockRead& block);
  storage::VersionChoice Choose(const RecordTable& table, const BlockRead& block) {
    return Choose(table, block, snapshot_);
  }
  storage::VersionChoice Choose(const RecordTable& table, const BlockRead& block, uint64_t snapshot) {
    return ChooseVersion(table.blocks(), block, ReadingAt(snapshot));
  }
  ReadAt ReadingAt(uint64_t snapshot) {
    return {.snapshot = snapshot, .state = &state_, .torn = options_.broken.torn_reads};
  }

  // read_in_place.cc
  bool StartInPlace(std::span<const SoughtRow> sought);
  bool ReadInPlace(std::span<SoughtRow> sought);
  bool LookAtBlocks(std::span<SoughtRow> sought);
  bool TakeRows(std::span<SoughtRow> sought);

  // scan.cc
  absl::Status ScanTable(uint32_t table, const RowVisitor& visit, bool& more);
  bool VisitStored(uint32_t table, const std::byte* stored, const RowVisitor& visit);
  absl::Status ReadBlocks(RecordTable& from, std::span<BlockRead> blocks, uint64_t snapshot);

  // index.cc
  /// A row as this transaction has written it.
  struct OwnRow {
    IndexKey key;
    const std::byte* row = nullptr;
  };
  class IndexScan;
  absl::Status AddReadIndexChanges();
  absl::Status RefreshIndexes();
  absl::StatusOr<TableIndex*> IndexOf(uint32_t table, AllocationId index);
  /// What the transaction has written to a table, in an index's order.
  struct OwnRows {
    AllocationId index;
    uint64_t version = 0;  // WriteSet::version() that it is of
    std::vector<OwnRow> rows;
  };
  std::span<const OwnRow> OwnRowsOf(uint32_t table, const TableIndex& index, std::span<const std::byte> low,
                                    std::span<const std::byte> high);

  // index_commit.cc
  struct Entered {
    TableIndex* index = nullptr;
    const PendingWrite* write = nullptr;
    IndexKey key;
    uint64_t entry = 0;
  };
  absl::Status CheckIndexChanges();
  absl::Status ClaimIndexEntries();
  absl::Status Enter(TableIndex& index, const PendingWrite& write);
  absl::Status JudgeIndexRivals(const Entered& entered);
  absl::Status JudgeIndexRival(const Entered& entered, uint64_t record);
  absl::Status RemoveEntered();

  // referenced_rows.cc
  struct Referencing;
  absl::Status CheckReferencedRows();
  absl::Status CheckReference(uint32_t parent, const ReferenceDescription& reference);
  absl::StatusOr<std::optional<uint32_t>> ChildOf(const ReferenceDescription& reference);
  absl::Status JudgeReferencing(const Referencing& referencing, std::span<const uint64_t> records);

  // index_clean.cc
  /// An entry that once led to a version of a record.
  struct Outlived {
    AllocationId index;
    uint64_t record = 0;
    uint64_t since = 0;  // timestamp of the version that has another key
    IndexKey key;
  };
  /// Those of one table.
  struct OutlivedEntries {
    std::deque<Outlived> entries;  // the oldest first
    size_t noted = 0;              // of them since the horizon was raised
  };
  /// `row`: what has replaced `before`; null: the record is free.
  void NoteOutlived(uint32_t table, uint64_t record, const std::byte* before, const std::byte* row,
                    uint64_t since);
  absl::Status CleanIndexes();
  absl::Status CleanIndexesOf(uint32_t table, size_t& left);
  absl::Status CleanIndex(uint32_t table, const Outlived& outlived);

  // index_fill.cc
  class IndexFill;
  absl::Status AwaitSlots();

  // lost.cc
  /// Ends the session; the result is the transaction's. committed_ is known.
  absl::Status Lose(const absl::Status& status);
  /// *decided: whether the transaction under way was committed; none: nobody can tell, or not now.
  absl::Status Settle(bool locks, std::optional<bool>& decided);
  absl::Status SettleLater(const absl::Status& status, bool locks);
  LostClient LostSelf(bool locks) const;
  /// For whoever opens the process's next session, and for the thread that settles.
  void PutBack(LostClient lost);
  void RetireOthers();
  void RecoverRetired();

  // commit.cc
  absl::Status CommitWrites();
  absl::Status TryCommit();
  absl::Status PlaceInserts();
  absl::Status SeekKeys();
  absl::Status Announce();
  absl::Status AddLog();
  absl::Status JudgeSought();
  absl::Status TakeOverDeleted();
  absl::Status LockRecords();
  absl::Status ClaimTimestamp();
  absl::Status JudgeRivals(uint32_t table, std::span<const HashIndex::Claim> claims);
  absl::Status Install();
  absl::Status Write();
  absl::StatusOr<bool> Decide();
  absl::Status AddFlips();
  absl::Status NoteWrites();
  absl::Status RollBack();
  absl::Status LockBlindly();
  absl::Status Conflict(storage::RecordHeader found, uint32_t table, uint64_t record);

  // lock_wait.cc
  absl::Status LockTimeout(uint32_t table);
  absl::Status AwaitMetLock(uint32_t tries);
  absl::StatusOr<storage::RecordHeader> AwaitUnlocked(uint32_t table, uint64_t record);
  absl::Status AwaitHeader(PendingWrite& write);

  Tables& tables_;
  RsiOptions options_;
  std::shared_ptr<storage::Channel> channel_;  // with LostClients, once the session is lost
  storage::VerbBatch batch_;
  ExtentSpace state_;
  LogSpace logs_;
  const StateGeometry geometry_;
  ClientSlot slot_;
  std::unique_ptr<ClientLog> log_;
  std::unique_ptr<CommitPoint> commit_point_;
  std::unique_ptr<Timestamps> timestamps_;
  std::unique_ptr<Reclaimer> reclaimer_;
  std::unique_ptr<Recovery> recovery_;
  std::vector<std::unique_ptr<RecordTable>> tables_open_;
  std::vector<absl::Status> closed_;  // CloseTable's
  uint64_t index_changes_ = 0;        // that tables_open_ knows of
  bool indexes_stale_ = false;

  // The transaction under way.
  bool active_ = false;
  bool looked_up_early_ = false;  // probes_ have been answered as the transaction began
  bool locking_ = false;          // from the first lock to the last: an error leaves it to recovery
  bool installed_ = false;        // versions are in their victims, or on their way there
  bool flipping_ = false;         // the last commit's flips are on their way
  enum class Phase : uint8_t { kUndecided, kDeciding, kCommitted };
  Phase phase_ = Phase::kUndecided;
  bool committed_ = false;            // whatever failed behind that
  absl::Status broken_;               // what ended the session
  bool is_heir_ = false;              // nobody uses it yet but to settle a lost one
  std::unique_ptr<RsiSession> heir_;  // of a lost one that was settled
  std::vector<LostClient> retired_;   // by this session, and not recovered yet
  uint64_t snapshot_ = 0;
  uint64_t timestamp_ = 0;  // claimed; 0: none
  uint64_t last_commit_ = 0;
  int64_t begun_ns_ = 0;
  BeginCosts begin_costs_;
  uint64_t conflict_ = 0;       // the newest version that this session has lost to
  uint32_t lost_to_locks_ = 0;  // transactions in a row
  uint32_t suspect_ = 0;        // held what this transaction wanted
  uint32_t holder_ = 0;         // of a snapshot that keeps blocks from being reclaimed
  MetRows rows_;
  WriteSet writes_;
  OwnRows own_rows_;                        // of the index that was scanned last
  uint64_t* index_changes_seen_ = nullptr;  // by the commit; scratch
  std::vector<Entered> entered_;            // into indexes
  std::vector<OutlivedEntries> outlived_;   // by table
  struct MetLock {
    uint32_t table = 0;
    uint64_t record = 0;
  };
  std::optional<MetLock> met_lock_;  // of another client: this try to commit has met it, or come behind it
  size_t commit_scratch_ = 0;        // in use before a try to commit
  int64_t lock_timeout_us_ = 0;
  std::optional<Deadline> lock_deadline_;  // of the call that waits; none: it has not waited yet
  uint64_t horizon_ = 0;                   // as last raised

  // Kept for their memory.
  std::vector<SoughtRow> sought_;
  std::vector<Reading> readings_, again_;
  /// One key's way through ReadInPlace.
  struct Look {
    const std::byte* at = nullptr;  // its entries, then its block; null: there is no row
    uint32_t slot = 0;
  };
  std::vector<Look> looks_;
  std::vector<std::vector<HashIndex::Probe>> probes_;  // by table: of the lookups under way
  std::vector<uint32_t> probed_;                       // by table: how many of them have been taken
  std::vector<std::vector<HashIndex::Claim>> claims_;  // by table: of the inserts under way
  bool sought_all_ = true;                             // no segment that SeekKeys has READ is being split
};

}  // namespace nam::txn
