#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "txn/rsi/committer.h"
#include "txn/rsi/index_keeper.h"
#include "txn/rsi/lock_wait.h"
#include "txn/rsi/referenced_rows.h"
#include "txn/rsi/row_reader.h"
#include "txn/rsi/row_scanner.h"
#include "txn/rsi/session.h"
#include "txn/rsi/session_core.h"
#include "txn/session.h"

namespace nam::txn {

/// The state that a session takes from one client to the next.
struct SessionState {
  std::shared_ptr<const SharedTimestamps> of;  // the transaction state of these timestamps; null: none
  uint64_t last_commit = 0;                    // its next snapshot holds it
  uint64_t last_snapshot = 0;                  // its next one is not older
  uint64_t newest_lost_to = 0;                 // Conflicts
  uint32_t lost_to_locks = 0;                  // likewise
  BeginCosts begin_costs;
};

/// A client of the transaction state: a channel to all memory servers with its scratch memory, a slot, a log,
/// and its open tables. The sessions of a process take turns with its clients (client_pool.h). Calls are
/// those of Session. One thread at a time.
class RsiClient final {
 public:
  /// `is_heir`: opened by a lost client to recover it. An heir has no heir itself.
  static absl::StatusOr<std::unique_ptr<RsiClient>> Open(Tables& tables, const RsiOptions& options,
                                                         bool is_heir);
  ~RsiClient();

  /// A lost client can only be replaced.
  bool lost() const { return !broken_.ok() || channel_->broken(); }
  absl::StatusOr<std::unique_ptr<RsiClient>> Succeed();
  /// The reason for the loss; OK until the loss is noticed.
  const absl::Status& broken() const { return broken_; }
  /// A transaction is under way.
  bool active() const { return transaction_.active; }
  /// The member that its connections belong to.
  MemberId member() const { return channel_->member(); }
  /// Between transactions: the state of the session that uses the client.
  SessionState TakeState();
  void SetState(const SessionState& state);

  absl::StatusOr<TableHandle> OpenTable(const std::string& name);
  absl::Status Begin();
  absl::Status Read(std::span<Lookup> lookups);
  absl::Status BeginAndRead(std::span<Lookup> lookups);
  absl::Status Scan(TableHandle table, const RowVisitor& visit);
  absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit);
  absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit);
  absl::Status Write(std::span<const RowWrite> writes);
  void SetLockTimeout(int64_t us) { lock_wait_.SetTimeout(us); }
  void SetTransactionBytesMax(uint64_t bytes) { transaction_bytes_max_ = bytes; }
  absl::StatusOr<uint64_t> Commit();
  void Abort();
  size_t Mark() const { return writes_.Mark(); }
  absl::Status RollBackTo(size_t mark);
  absl::Status MayWrite(size_t rows) const;
  uint64_t snapshot() const { return transaction_.snapshot; }
  BeginCosts begin_costs() const { return begin_costs_; }
  absl::StatusOr<uint64_t> NewestCommit();
  absl::StatusOr<uint64_t> AwaitCommits();
  absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index);
  absl::StatusOr<VacuumCounts> Vacuum(TableHandle table);

 private:
  RsiClient(std::unique_ptr<SessionCore> core, bool is_heir);

  RecordTable& table(uint32_t number) { return core_->table(number); }
  absl::Status CheckActive() const;
  absl::Status BeginWith(std::span<const SoughtRow> early);
  absl::Status TakeSnapshot(std::span<const SoughtRow> early);
  void AwaitLocks();
  absl::Status End(absl::Status status);
  absl::Status Leave();

  // statements.cc
  /// Checks that the table is open, and that its keys, or whole rows, have so many bytes.
  absl::Status CheckTable(TableHandle handle, size_t bytes, bool whole_row) {
    if (IsOpen(handle)) [[likely]] {
      const TableDescription& description = table(handle.value).description();
      if (bytes == (whole_row ? description.row_bytes : description.key_bytes)) [[likely]]
        return absl::OkStatus();
    }
    return TableError(handle, bytes, whole_row);
  }
  absl::Status TableError(TableHandle handle, size_t bytes, bool whole_row);
  /// Recovery opens tables, too, even those that have lost memory.
  bool IsOpen(TableHandle handle) const { return handle.value < whole_.size() && whole_[handle.value] != 0; }
  /// Opens the table unless it is open. An error ends the transaction, unless the handle names no table.
  absl::Status EnsureOpen(TableHandle handle) {
    if (IsOpen(handle)) [[likely]]
      return absl::OkStatus();
    return OpenNumbered(handle);
  }
  absl::Status OpenNumbered(TableHandle handle);
  absl::Status Seek(std::span<const Lookup> lookups);
  absl::Status Deliver(std::span<Lookup> lookups);
  absl::StatusOr<uint32_t> Meet(const SoughtRow& row);
  void KeepMet(size_t scratch_before, size_t rows_before);
  absl::Status ReadUnmet(std::span<const RowWrite> writes);
  absl::Status WriteOne(const RowWrite& write);
  absl::Status WriteOwn(const RowWrite& write, PendingWrite& own);
  absl::Status WriteKnown(const RowWrite& by, const SoughtRow& known);
  void AddInsert(uint32_t table, uint64_t hash, std::span<const std::byte> row);
  absl::Status EndWithKeyTaken(uint32_t table);
  void FetchForUpdate(const PendingWrite& update);
  void FetchForInsert(const PendingWrite& insert);
  /// Scratch memory for PendingWrite::row. The caller has checked that there is enough.
  std::byte* CopyRow(uint32_t table, const std::byte* row, bool whole_block);

  // index_fill.cc
  absl::Status AwaitSlots();

  // vacuum.cc
  absl::StatusOr<uint64_t> RaisedHorizon();

  // lost.cc
  /// Ends the session; the result is the transaction's. transaction_.committed is known.
  absl::Status Lose(const absl::Status& status);
  /// *decided: whether the transaction under way committed; nullopt: unknown, perhaps for now.
  absl::Status RecoverByHeir(bool locks, std::optional<bool>& decided);
  absl::Status RecoverLater(const absl::Status& status, bool locks);
  LostClient LostSelf(bool locks) const;
  /// Passes it to the process's next session, and to the thread that recovers.
  void PutBack(LostClient lost);
  void RetireOthers();
  void RecoverRetired();

  const std::unique_ptr<SessionCore> core_;
  RowReader reader_;
  IndexKeeper indexes_;
  ReferencedRows references_;
  LockWait lock_wait_;
  Committer committer_;
  RowScanner scanner_;

  // The core's.
  Tables& tables_;
  const RsiOptions& options_;
  const std::shared_ptr<storage::Channel>& channel_;
  storage::VerbBatch& batch_;
  ClientSlot& slot_;
  Timestamps* const timestamps_;
  Recovery* const recovery_;
  RsiTransaction& transaction_;
  Conflicts& conflicts_;
  MetRows& rows_;
  WriteSet& writes_;

  absl::Status broken_;              // what ended the session
  bool is_heir_ = false;             // serves only to recover a lost client
  std::unique_ptr<RsiClient> heir_;  // set once a lost client is recovered
  std::vector<LostClient> retired_;  // this session's, not recovered yet
  std::vector<uint8_t> whole_;       // by table number: OpenTable has opened it
  uint64_t transaction_bytes_max_;   // for the next transaction
  bool looked_up_early_ = false;     // keys were looked up as the transaction began
  uint64_t last_commit_ = 0;
  uint64_t last_snapshot_ = 0;  // the session's, perhaps from another client that had READ more
  int64_t begun_ns_ = 0;
  BeginCosts begin_costs_;
  std::vector<SoughtRow> sought_;  // kept for its memory
};

}  // namespace nam::txn
