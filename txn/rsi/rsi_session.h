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

/// A session for as long as its connections last; ReconnectingSession is what others get.
class RsiSession final : public Session {
 public:
  /// A heir is what a lost session opens to be settled by. It does not have one itself.
  static absl::StatusOr<std::unique_ptr<RsiSession>> Open(Tables& tables, const RsiOptions& options,
                                                          bool is_heir);
  ~RsiSession() override;

  /// Of no more use than to be succeeded by another.
  bool lost() const { return !broken_.ok() || channel_->broken(); }
  absl::StatusOr<std::unique_ptr<RsiSession>> Succeed();
  /// A handle of a table that cannot be opened now: whatever uses it fails with `why`.
  TableHandle CloseTable(const absl::Status& why);
  bool IsOpen(TableHandle handle) const { return handle.value < core_->open.size(); }
  AllocationId AllocationOf(TableHandle open) const {
    return core_->open[open.value]->description().allocation;
  }

  absl::StatusOr<TableHandle> OpenTable(const std::string& name) override;
  absl::Status Begin() override;
  absl::Status Read(std::span<Lookup> lookups) override;
  absl::Status BeginAndRead(std::span<Lookup> lookups) override;
  absl::Status Scan(TableHandle table, const RowVisitor& visit) override;
  absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit) override;
  absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                         std::span<const std::byte> high, const RowVisitor& visit) override;
  absl::Status Write(std::span<const RowWrite> writes) override;
  void SetLockTimeout(int64_t us) override { lock_wait_.SetTimeout(us); }
  void SetTransactionBytesMax(uint64_t bytes) override { transaction_bytes_max_ = bytes; }
  absl::StatusOr<uint64_t> Commit() override;
  void Abort() override;
  size_t Mark() const override { return writes_.Mark(); }
  absl::Status RollBackTo(size_t mark) override;
  absl::Status MayWrite(size_t rows) const override;
  uint64_t snapshot() const override { return transaction_.snapshot; }
  BeginCosts begin_costs() const override { return begin_costs_; }
  absl::StatusOr<uint64_t> AwaitCommits() override;
  absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index) override;

 private:
  RsiSession(std::unique_ptr<SessionCore> core, bool is_heir);

  RecordTable& table(uint32_t number) { return core_->table(number); }
  absl::Status CheckActive() const;
  absl::Status BeginWith(std::span<const SoughtRow> early);
  absl::Status TakeSnapshot(std::span<const SoughtRow> early);
  void AwaitLocks();
  absl::Status End(absl::Status status);
  absl::Status Leave();

  // statements.cc
  /// That it is open, and its keys, or whole rows, have so many bytes.
  absl::Status CheckTable(TableHandle handle, size_t bytes, bool whole_row) {
    if (IsOpen(handle)) [[likely]] {
      const TableDescription& description = table(handle.value).description();
      if (bytes == (whole_row ? description.row_bytes : description.key_bytes)) [[likely]]
        return absl::OkStatus();
    }
    return TableError(handle, bytes, whole_row);
  }
  absl::Status TableError(TableHandle handle, size_t bytes, bool whole_row);
  /// Of a handle beyond those that are open. Ends the transaction if that table was closed.
  absl::Status NotOpen(TableHandle handle);
  absl::Status Seek(std::span<const Lookup> lookups);
  absl::Status Deliver(std::span<Lookup> lookups);
  absl::Status WriteOne(const RowWrite& write);
  absl::Status WriteOwn(const RowWrite& write, PendingWrite& own);
  absl::Status WriteKnown(const RowWrite& by, const SoughtRow& known);
  void AddInsert(uint32_t table, uint64_t hash, std::span<const std::byte> row);
  absl::Status EndWithKeyTaken(uint32_t table);
  void FetchForUpdate(const PendingWrite& update);
  void FetchForInsert(const PendingWrite& insert);
  /// Scratch memory as PendingWrite::row, of which there is enough.
  std::byte* CopyRow(uint32_t table, const std::byte* row, bool whole_block);

  // index_fill.cc
  absl::Status AwaitSlots();

  // lost.cc
  /// Ends the session; the result is the transaction's. transaction_.committed is known.
  absl::Status Lose(const absl::Status& status);
  /// *decided: whether the transaction under way was committed; none: nobody can tell, or not now.
  absl::Status Settle(bool locks, std::optional<bool>& decided);
  absl::Status SettleLater(const absl::Status& status, bool locks);
  LostClient LostSelf(bool locks) const;
  /// For whoever opens the process's next session, and for the thread that settles.
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

  // Of the core.
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

  absl::Status broken_;               // what ended the session
  bool is_heir_ = false;              // nobody uses it yet but to settle a lost one
  std::unique_ptr<RsiSession> heir_;  // of a lost one that was settled
  std::vector<LostClient> retired_;   // by this session, and not recovered yet
  std::vector<absl::Status> closed_;  // CloseTable's
  uint64_t transaction_bytes_max_;    // of the next transaction
  bool looked_up_early_ = false;      // keys were looked up as the transaction began
  uint64_t last_commit_ = 0;
  int64_t begun_ns_ = 0;
  BeginCosts begin_costs_;
  std::vector<SoughtRow> sought_;  // kept for its memory
};

}  // namespace nam::txn
