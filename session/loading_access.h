#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "session/record_access.h"

namespace nam::session {

/// A session's transactions. One that grows large may become a transaction of loads:
///
///     Begin ─▶ writes of the engine's transaction ── BeginLoads ─▶ each table that was written is a load
///                     │ Commit                                        │ reads and writes of these tables: in
///                     ▼                                               │ the loads; of others: reads alone,
///                     or a
///                  engine's Commit                                    │ load more
///                                                                     ▼ Commit: FinishLoads
///
/// The engine's transaction goes on without writes: other tables are read at its snapshot. What a statement
/// writes to a load is committed there when the statement ends (EndStatement), so it cannot be rolled back
/// without the whole transaction. Borrows `access`; belongs to the session's thread.
class LoadingAccess final : public RecordAccess {
 public:
  explicit LoadingAccess(RecordAccess& access) : access_(access) {}

  /// Called before a statement writes to this table alone.
  void OfStatement(std::shared_ptr<const proto::Table> table) { of_statement_ = std::move(table); }
  /// Whether the open transaction is one of loads.
  bool loads() const { return !loads_.empty(); }
  /// Whether the open transaction has written to the table.
  bool IsWritten(const proto::Table& table) const;
  /// For portions, between their transactions; null: the table is no load.
  RecordAccess* LoadOf(const proto::Table& table);
  /// Makes loads of all tables that the transaction has written, and of this one, for which at least so many
  /// rows will come. FAILED_PRECONDITION: one of them cannot be loaded; nothing has happened.
  absl::Status BeginLoads(const proto::Table& table, uint64_t rows);
  /// The transaction is about to delete all rows of the statement's table, which it has not written: these.
  void NoteEmptied(RowsDigest rows) { written_[of_statement_->allocation()] = {of_statement_, rows}; }
  /// As BeginLoads, instead of deleting the rows. nullopt: also those that have come since.
  absl::Status Empty(const proto::Table& table, std::optional<RowsDigest> rows);
  /// Called when a statement of the transaction has succeeded. After an error the transaction is over.
  absl::Status EndStatement();

  absl::Status Begin() override;
  absl::Status Commit() override;
  void Abort() override;
  size_t Mark() const override { return access_.Mark(); }
  absl::Status RollBackTo(size_t mark) override;
  absl::StatusOr<uint64_t> NewestCommit() override { return access_.NewestCommit(); }
  absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                      const OnRow& on_row) override;
  absl::Status Scan(const proto::Table& table, const OnRow& on_row) override;
  absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                         const OnRow& on_row) override;
  absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) override;
  uint64_t snapshot() const override { return access_.snapshot(); }
  absl::StatusOr<Stored> StoredAs(const proto::Table& table) override;
  absl::Status MayWrite(size_t rows) const override { return access_.MayWrite(rows); }
  absl::Status Insert(const proto::Table& table, std::span<const std::string> rows, size_t* taken) override;
  absl::Status Update(const proto::Table& table, std::span<const std::string> rows) override;
  absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) override;
  absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) override;
  void SetLockTimeout(int64_t us) override { access_.SetLockTimeout(us); }
  void SetTransactionBytesMax(uint64_t bytes) override { access_.SetTransactionBytesMax(bytes); }
  absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) override {
    return access_.NextNumber(table, column);
  }
  absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) override {
    return access_.CreateTable(table, indexes);
  }
  absl::Status DropTable(const std::string& name, bool cascade) override {
    return access_.DropTable(name, cascade);
  }
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) override {
    return access_.CreateIndex(table, index);
  }
  absl::Status AwaitIndex(const std::string& name) override { return access_.AwaitIndex(name); }
  absl::Status DropIndex(const std::string& name) override { return access_.DropIndex(name); }
  absl::StatusOr<txn::VacuumCounts> Vacuum(const proto::Table& table) override {
    return access_.Vacuum(table);
  }

 private:
  struct Load {
    uint64_t table = 0;  // its allocation
    std::optional<RowsDigest> replaced;
    std::unique_ptr<RecordLoad> load;
    bool open = false;  // a transaction of a statement
  };
  struct Written {
    std::shared_ptr<const proto::Table> table;  // null: no statement's own
    RowsDigest replaced;                        // the table's rows, all of which the transaction has deleted
  };

  Load* Find(const proto::Table& table);
  absl::StatusOr<Load> Make(const proto::Table& table, uint64_t rows, std::optional<RowsDigest> replaced);
  /// Of all tables that were written; one of them gets at least so many rows.
  absl::StatusOr<std::vector<Load>> MakeOfWritten(uint64_t growing, uint64_t rows);
  /// What the transaction has written goes to the loads.
  absl::Status Become(std::vector<Load> made);
  absl::Status MoveRows(const proto::Table& table, RecordAccess& to);
  /// For one call of a statement.
  absl::StatusOr<RecordAccess*> ToRead(const proto::Table& table);
  absl::StatusOr<RecordAccess*> ToWrite(const proto::Table& table);

  RecordAccess& access_;
  std::vector<Load> loads_;
  std::map<uint64_t, Written> written_;  // by allocation; of a transaction without loads
  bool rolled_back_ = false;             // in part: what is in written_ may be undone
  std::shared_ptr<const proto::Table> of_statement_;
};

/// The rows of a load's next transaction, which has just begun.
uint64_t PortionRows(const proto::Table& table, const RecordAccess& access);
/// Of a load. A lost connection leaves open whether a portion is in the load, which is given up in any case.
absl::Status CommitPortion(RecordAccess& access);

}  // namespace nam::session
