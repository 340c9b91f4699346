#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "sql/record_access.h"
#include "txn/session.h"

namespace nam::session {

/// Views a text as bytes: sessions keep rows, keys and pages as texts.
inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class RecordAccess;

/// What a table's rows are, whatever their order. Empty: there are none.
struct RowsDigest {
  uint64_t rows = 0;
  uint64_t sum = 0;  // of checksums
  void Add(std::span<const std::byte> row);
  bool operator==(const RowsDigest&) const = default;
};

/// A load of all rows of a table, in transactions of its own that no other session sees:
///
///     BeginLoad ─▶ access(): Begin, Insert … Commit ─▶ Begin, Insert … Commit ─▶ FinishLoads: the load's
///     rows
///                  │                                                             are the table's
///                  └──── an error, or the end of the client ────▶ nothing of it is left
///
/// Destroyed without FinishLoads, it leaves nothing.
class RecordLoad {
 public:
  virtual ~RecordLoad() = default;
  /// In it the table has the load's rows alone.
  virtual RecordAccess& access() = 0;
  /// The hidden table that has the rows.
  virtual const proto::Table& stored() const = 0;
};

/// SQL's interface to the transaction engine: one transaction at a time, which sees its own writes. Rows have
/// the layout of partitioner/record_row.h. ABORTED: in conflict with another transaction, ALREADY_EXISTS: the
/// key is taken. An error of the engine may end the transaction as Abort does: RollBackTo tells. Only
/// UNAVAILABLE from Commit leaves open whether it took effect.
class RecordAccess {
 public:
  /// Gets a row, which is valid until it returns; returns false to stop.
  using OnRow = std::function<absl::StatusOr<bool>(std::span<const std::byte> row)>;
  virtual ~RecordAccess() = default;

  virtual absl::Status Begin() = 0;
  virtual absl::Status Commit() = 0;
  /// Also called after an error that has ended the transaction.
  virtual void Abort() = 0;
  /// Marks a place after all writes of the transaction so far. It holds until an earlier mark is rolled back
  /// to, or the transaction ends.
  virtual size_t Mark() const = 0;
  /// Undoes the writes since `mark`. Any error: the transaction is over.
  virtual absl::Status RollBackTo(size_t mark) = 0;
  /// As txn::Session::NewestCommit.
  virtual absl::StatusOr<uint64_t> NewestCommit() = 0;
  /// Between transactions: drops all state of the former member, after this process has become another one.
  virtual void BeginAnew() {}

  /// Visits the rows with these keys; ignores missing keys.
  virtual absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                              const OnRow& on_row) = 0;
  /// Visits all rows, in no order.
  virtual absl::Status Scan(const proto::Table& table, const OnRow& on_row) = 0;
  /// Visits the rows of a range of the ordered index RecordStorage.parts[index], in its order. It is complete
  /// for snapshot().
  virtual absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                                 const OnRow& on_row) = 0;
  /// The transaction's writes to the table so far: each key once, with its current row, or an empty one if it
  /// is deleted.
  using OnWrite = std::function<void(std::string_view key, std::string_view row)>;
  virtual absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) = 0;
  /// The snapshot of the transaction under way.
  virtual uint64_t snapshot() const = 0;
  /// As txn::Session::MayWrite: a statement that finds more rows than that can stop searching.
  virtual absl::Status MayWrite(size_t rows) const = 0;

  /// Never called from within a Lookup or Scan. Insert: rows with different keys, none of which exists unless
  /// this transaction has deleted it. ALREADY_EXISTS: rows[*taken] exists; rows before it may have been
  /// inserted. Update, Delete: rows that this transaction has got by Lookup or Scan.
  virtual absl::Status Insert(const proto::Table& table, std::span<const std::string> rows,
                              size_t* taken) = 0;
  virtual absl::Status Update(const proto::Table& table, std::span<const std::string> rows) = 0;
  virtual absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) = 0;
  /// As txn::Session::Lock, for rows that the transaction sees. `waits`: for locks of other clients, within
  /// the lock timeout.
  virtual absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) = 0;
  /// As txn::Session::SetLockTimeout, from the next call on.
  virtual void SetLockTimeout(int64_t us) = 0;
  /// As txn::Session::SetTransactionBytesMax.
  virtual void SetTransactionBytesMax(uint64_t bytes) = 0;

  /// Returns a number that no other call for this column returns, counted up from 0 with gaps; it is never
  /// reused, even if the transaction fails.
  virtual absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) = 0;

  /// Called outside of transactions. ALREADY_EXISTS: a table of this name exists. The table is as CREATE
  /// TABLE describes it; the engine fills in memory, parts and version. `indexes`, without extents, are made
  /// with it: an error leaves nothing behind.
  virtual absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) = 0;
  /// Drops any table, with `cascade` also the views that read it. NOT_FOUND: there is none of this name;
  /// 2BP01: another one has a foreign key to it.
  virtual absl::Status DropTable(const std::string& name, bool cascade = false) = 0;
  /// Fills it with the existing rows, while others write. The index has no extents yet. ALREADY_EXISTS: its
  /// name is taken, FAILED_PRECONDITION: it is unique and two rows have the same key, or it cannot be made at
  /// present.
  virtual absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) = 0;
  /// After ALREADY_EXISTS of CreateIndex, for a bounded time: OK once that index is complete, or if a table
  /// has the name; NOT_FOUND: it is gone, for example with its creator; 55000: it is still being filled.
  virtual absl::Status AwaitIndex(const std::string& /*name*/) { return absl::OkStatus(); }
  /// NOT_FOUND: there is no such index; FAILED_PRECONDITION: it belongs to a constraint.
  virtual absl::Status DropIndex(const std::string& name) = 0;

  /// Called outside of transactions, as txn::Session::Vacuum.
  virtual absl::StatusOr<txn::VacuumCounts> Vacuum(const proto::Table& /*table*/) {
    return absl::UnimplementedError("nothing is kept");
  }

  /// Also called during a transaction, which does not notice. `rows`: at least so many will come. `replaced`:
  /// the rows that the table has, and must have at the end, when the load's take their place; nullopt: any.
  /// The table has no foreign key and is not referenced. FAILED_PRECONDITION: it has other rows, or an index
  /// that is not complete.
  virtual absl::StatusOr<std::unique_ptr<RecordLoad>> BeginLoad(const proto::Table& /*table*/,
                                                                uint64_t /*rows*/,
                                                                std::optional<RowsDigest> /*replaced*/) {
    return absl::FailedPreconditionError("no loads");
  }
  /// Called between transactions of the loads, which BeginLoad of this object has made; each at most once.
  /// All rows become visible in one moment. ABORTED: others have written or altered a table; nothing has
  /// happened. UNAVAILABLE: it is open whether the rows are the tables'.
  virtual absl::Status FinishLoads(std::span<const std::unique_ptr<RecordLoad>> /*loads*/) {
    return absl::UnimplementedError("no loads");
  }
  /// Where the open transaction reads a table: its rows lie in `table`, at this snapshot.
  struct Stored {
    const proto::Table* table = nullptr;
    uint64_t snapshot = 0;
  };
  virtual absl::StatusOr<Stored> StoredAs(const proto::Table& table) { return Stored{&table, snapshot()}; }
  /// Called between transactions, as txn::Session::AwaitCommits.
  virtual absl::StatusOr<uint64_t> AwaitCommits() { return absl::UnimplementedError("no shared tables"); }
};

}  // namespace nam::session
