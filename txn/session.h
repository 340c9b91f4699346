#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"

/// Runs transactions under snapshot isolation. One interface, several protocols: RSI over one-sided verbs,
/// and two-phase commit over sockets or SEND/RECEIVE.
///
///     Begin ─▶ Read* ─▶ Insert, Update, Delete* ─▶ Commit ─▶ OK, the commit timestamp
///       snapshot          kept at the client          └────▶ ABORTED with a reason; nothing has happened
namespace nam::txn {

/// A table or an ordered index of one session; from Session::Open….
struct TableHandle {
  uint32_t value = 0;
};

enum class AbortReason : uint8_t {
  kWriteWrite,        // another transaction has changed it since the snapshot, or is about to
  kSnapshotTooOld,    // the version that the snapshot sees was replaced
  kUniqueKey,         // a row with this key exists
  kLockOfDeadClient,  // locked by a dead client; being recovered, try again
  kConnectionLost,    // to a memory server; the transaction was rolled back
  kSkipped,           // it stalled for longer than others wait, and was rolled back
  kLockTimeout,       // it waited for another client's lock as long as SetLockTimeout allows
  kForeignKey,        // rows of another table reference a row that it deletes, or whose key it changes
};
inline constexpr size_t kAbortReasons = 8;
std::string_view AbortReasonName(AbortReason reason);
/// ABORTED; ALREADY_EXISTS for kUniqueKey, FAILED_PRECONDITION for kForeignKey.
absl::Status AbortStatus(AbortReason reason, std::string_view what);
std::optional<AbortReason> AbortReasonOf(const absl::Status& status);

/// RESOURCE_EXHAUSTED although the cluster has memory: the transaction reads or writes more than the protocol
/// takes. A retry fails likewise.
absl::Status TooLargeStatus(std::string_view what);
bool IsTooLarge(const absl::Status& status);

/// RESOURCE_EXHAUSTED from Begin: the process has as many transactions under way as it may, and none of them
/// ended in time. Nothing has begun.
absl::Status NoClientFreeStatus(std::string_view what);
bool IsNoClientFree(const absl::Status& status);

/// Gets a row's bytes, valid during the call; returns false to stop. Does not use the session.
using RowVisitor = std::function<bool(std::span<const std::byte> row)>;

/// Gets the key of a row that the transaction has written, and the row's current bytes, empty if it is
/// deleted; otherwise like RowVisitor.
using WriteVisitor = std::function<bool(std::span<const std::byte> key, std::span<const std::byte> row)>;

/// A key that Read looks up, and the result. A row begins with its key.
struct Lookup {
  static constexpr uint32_t kNotMet = ~uint32_t{0};
  TableHandle table;
  std::span<const std::byte> key;
  std::span<std::byte> row;  // the table's row_bytes; filled if found
  bool found = false;
  uint32_t met = kNotMet;  // the row's number among those that the transaction has met, if any
};

/// A transaction's write of one row.
struct RowWrite {
  enum class Kind : uint8_t {
    kInsert,  // a row whose key the snapshot does not hold
    /// A row that the transaction sees; NOT_FOUND otherwise. RSI reads first what the transaction has not
    /// read.
    kUpdate,
    kDelete,  // likewise
    /// Likewise. Commit succeeds only if no other transaction changes the row between the snapshot and the
    /// commit. The row stays as it is. Counts as a write.
    kLock,
  };
  Kind kind = Kind::kInsert;
  TableHandle table;
  std::span<const std::byte> row;  // for kDelete and kLock the key alone
  uint32_t met = Lookup::kNotMet;  // from Read, if at hand; spares the search for the row
};

/// A session's cost of beginning transactions, that is of taking their snapshots.
struct BeginCosts {
  uint64_t begins = 0;
  uint64_t verbs = 0;  // work requests
  uint64_t timed = 0;  // begins whose time was measured
  int64_t ns = 0;      // that time, waits included

  BeginCosts operator+(const BeginCosts& more) const {
    return {begins + more.begins, verbs + more.verbs, timed + more.timed, ns + more.ns};
  }
};

/// What Session::Vacuum has taken away from a table.
struct VacuumCounts {
  uint64_t versions = 0;
  uint64_t entries = 0;  // of ordered indexes
};

/// A client's transactions, one at a time, on one thread. A transaction sees its own writes. Any error
/// (ABORTED, ALREADY_EXISTS, UNAVAILABLE …) rolls the transaction back, and Begin starts the next one. The
/// call that makes a transaction too large returns the error (IsTooLarge), not Commit. Only UNAVAILABLE from
/// Commit leaves open whether the transaction took effect.
class Session {
 public:
  virtual ~Session() = default;

  virtual absl::StatusOr<TableHandle> OpenTable(const std::string& name) = 0;

  /// Takes a snapshot.
  virtual absl::Status Begin() = 0;
  /// Reads all rows in as many round trips as a single row takes. A missing row is no error.
  virtual absl::Status Read(std::span<Lookup> lookups) = 0;
  /// Begin and the transaction's first Read at once. RSI saves a round trip by it.
  virtual absl::Status BeginAndRead(std::span<Lookup> lookups);
  /// Applies the writes in order, as if each had a call of its own. Applies none if one of them
  /// names a table that is not open or has the wrong size. One call is cheaper than many.
  virtual absl::Status Write(std::span<const RowWrite> writes) = 0;
  absl::Status Insert(TableHandle table, std::span<const std::byte> row) {
    return WriteOne({.kind = RowWrite::Kind::kInsert, .table = table, .row = row});
  }
  absl::Status Update(TableHandle table, std::span<const std::byte> row) {
    return WriteOne({.kind = RowWrite::Kind::kUpdate, .table = table, .row = row});
  }
  absl::Status Delete(TableHandle table, std::span<const std::byte> key) {
    return WriteOne({.kind = RowWrite::Kind::kDelete, .table = table, .row = key});
  }
  absl::Status Lock(TableHandle table, std::span<const std::byte> key) {
    return WriteOne({.kind = RowWrite::Kind::kLock, .table = table, .row = key});
  }
  /// Visits every row that the transaction sees, in no order.
  virtual absl::Status Scan(TableHandle table, const RowVisitor& visit);
  /// Visits the transaction's own writes to a table so far, each key once. A scan of the snapshot by another
  /// process lacks them, and must skip the stored rows that they replace.
  virtual absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit);
  /// Visits the rows whose keys in an ordered index of the table begin with a prefix from `low` on and below
  /// `high` (empty: no bound), in the order of these keys; otherwise like Scan. The allocation of its first
  /// extent names the index. ABORTED: it was dropped.
  virtual absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                                 std::span<const std::byte> high, const RowVisitor& visit);
  /// Limits the wait, in microseconds, for records that other clients have locked: Write's for one row, and
  /// all of Commit's together. The call continues if the records are unlocked unchanged. 0, the default:
  /// conflicts at once.
  virtual void SetLockTimeout(int64_t /*us*/) {}
  /// Bounds the client memory that one transaction's reads and writes may take; from the next Begin on.
  virtual void SetTransactionBytesMax(uint64_t) {}
  /// Marks a place after all writes of the transaction so far. It holds until an earlier mark is rolled back
  /// to, or the transaction ends.
  virtual size_t Mark() const;
  /// Undoes the writes since `mark`.
  virtual absl::Status RollBackTo(size_t mark);
  /// Too large (IsTooLarge) if no statement of the transaction can change that many rows.
  virtual absl::Status MayWrite(size_t /*rows*/) const { return absl::OkStatus(); }
  /// Returns the timestamp; 0 if nothing was written.
  virtual absl::StatusOr<uint64_t> Commit() = 0;
  virtual void Abort() = 0;

  /// The current transaction's snapshot: it sees commits up to it.
  virtual uint64_t snapshot() const = 0;
  /// Zero if the protocol does not count.
  virtual BeginCosts begin_costs() const { return {}; }

  /// Called between transactions. Returns a timestamp that no commit up to now is above, decided or not: one
  /// that is under way hides later ones from snapshots, though they are acknowledged. The next Begin waits
  /// for a snapshot that holds all of them.
  virtual absl::StatusOr<uint64_t> NewestCommit();
  /// Called between transactions, after the catalog has changed a table's indexes: from then on every commit
  /// follows the change. Returns a snapshot that holds all earlier commits.
  virtual absl::StatusOr<uint64_t> AwaitCommits();
  /// Called between transactions: adds entries of all rows to an index that commits keep in step. Returns the
  /// first snapshot that may use it. ALREADY_EXISTS: it is unique, and a key is there twice.
  virtual absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index);
  /// Called between transactions: empties versions of the table's rows that no snapshot needs, and removes
  /// dead entries from its ordered indexes, while others read and write.
  virtual absl::StatusOr<VacuumCounts> Vacuum(TableHandle table);

 private:
  absl::Status WriteOne(const RowWrite& write) { return Write({&write, 1}); }
};

}  // namespace nam::txn
