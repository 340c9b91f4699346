#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "sql/record_access.h"

namespace nam::session {

/// What SQL needs of the transaction engine: one transaction at a time, which sees its own writes. Rows are
/// as partitioner/record_row.h lays them out. ABORTED: in conflict with another transaction, ALREADY_EXISTS:
/// the key is taken. An error of the engine may end the transaction as Abort does: RollBackTo tells. Only
/// UNAVAILABLE of Commit leaves open whether it took effect.
class RecordAccess {
 public:
  /// Gets a row, which is valid until it returns; false to get no more.
  using OnRow = std::function<absl::StatusOr<bool>(std::span<const std::byte> row)>;
  virtual ~RecordAccess() = default;

  virtual absl::Status Begin() = 0;
  virtual absl::Status Commit() = 0;
  /// Also after an error that has ended the transaction.
  virtual void Abort() = 0;
  /// A place behind all that the transaction has written so far. It holds until one before it is rolled back
  /// to, or the transaction ends.
  virtual size_t Mark() const = 0;
  /// What the transaction has written is again as it was at `mark`. Any error: the transaction is over.
  virtual absl::Status RollBackTo(size_t mark) = 0;
  /// Between transactions: this process has become another member, and what the former one had is lost.
  virtual void BeginAnew() {}

  /// The rows with these keys; keys that are not there are passed over.
  virtual absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                              const OnRow& on_row) = 0;
  /// All rows, in no order.
  virtual absl::Status Scan(const proto::Table& table, const OnRow& on_row) = 0;
  /// The rows of a range of the ordered index RecordStorage.parts[index], in its order. It is complete for
  /// snapshot().
  virtual absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                                 const OnRow& on_row) = 0;
  /// What the transaction has written to the table so far: each key once, with the row as it is now, or
  /// nothing if it is deleted.
  using OnWrite = std::function<void(std::string_view key, std::string_view row)>;
  virtual absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) = 0;
  /// Of the transaction under way.
  virtual uint64_t snapshot() const = 0;
  /// As txn::Session::MayWrite: a statement that finds more rows than that need not find them all.
  virtual absl::Status MayWrite(size_t rows) const = 0;

  /// Never from within a Lookup or Scan. Insert: of rows with different keys, none of which is there, or that
  /// this transaction has deleted. ALREADY_EXISTS: that of rows[*taken] is; rows before it may have been
  /// inserted. Update, Delete: of rows that this transaction has got by Lookup or Scan.
  virtual absl::Status Insert(const proto::Table& table, std::span<const std::string> rows,
                              size_t* taken) = 0;
  virtual absl::Status Update(const proto::Table& table, std::span<const std::string> rows) = 0;
  virtual absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) = 0;
  /// As txn::Session::Lock, of rows that the transaction sees. `waits`: for locks of other clients, within
  /// the lock timeout.
  virtual absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) = 0;
  /// As txn::Session::SetLockTimeout, from the next call on.
  virtual void SetLockTimeout(int64_t us) = 0;
  /// As txn::Session::SetTransactionBytesMax.
  virtual void SetTransactionBytesMax(uint64_t bytes) = 0;

  /// A number that no other call for this column has got or will get, counted up from 0 with gaps; it is
  /// taken for good, whatever becomes of the transaction.
  virtual absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) = 0;

  /// Outside of a transaction. ALREADY_EXISTS: there is a table of this name. The table is as CREATE TABLE
  /// describes it; memory, parts and version are for the engine to fill in. `indexes`, without extents, are
  /// made with it: on any error nothing stays.
  virtual absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) = 0;
  /// Any table, with `cascade` also the views that read it. NOT_FOUND: there is none of this name; 2BP01:
  /// another one has a foreign key to it.
  virtual absl::Status DropTable(const std::string& name, bool cascade = false) = 0;
  /// Fills it with the rows that are there, while others write. The index has no extents yet. ALREADY_EXISTS:
  /// its name is taken, FAILED_PRECONDITION: it is unique and two rows have the same key, or it cannot be
  /// made at present.
  virtual absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) = 0;
  /// NOT_FOUND: there is no such index; FAILED_PRECONDITION: it is a constraint's.
  virtual absl::Status DropIndex(const std::string& name) = 0;
};

}  // namespace nam::session
