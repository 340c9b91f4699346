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

/// Transactions under snapshot isolation. One interface, several protocols: RSI over one-sided verbs, and
/// two-phase commit over sockets or SEND/RECEIVE.
///
///     Begin ─▶ Read* ─▶ Insert, Update, Delete* ─▶ Commit ─▶ OK, the commit timestamp
///       snapshot          kept at the client          └────▶ ABORTED with a reason; nothing has happened
namespace nam::txn {

/// A table or an ordered index of one session; from Session::Open….
struct TableHandle {
  uint32_t value = 0;
};

enum class AbortReason : uint8_t {
  kWriteWrite,      // somebody else has changed it since the snapshot, or is about to
  kSnapshotTooOld,  // the version that the snapshot sees has been replaced
  kUniqueKey,       // a row with this key is there
  kDeadLock,        // locked by a client that is gone; being recovered, try again
  kConnectionLost,  // to a memory server; what the transaction had done was taken back
  kSkipped,         // it stood still for longer than others wait; what it had done was taken back
  kLockTimeout,     // it has waited for another client's lock for as long as SetLockTimeout allows
  kForeignKey,      // rows of another table reference a row that it deletes, or gives another key
};
inline constexpr size_t kAbortReasons = 8;
std::string_view AbortReasonName(AbortReason reason);
/// ABORTED, or ALREADY_EXISTS for kUniqueKey, FAILED_PRECONDITION for kForeignKey.
absl::Status AbortStatus(AbortReason reason, std::string_view what);
std::optional<AbortReason> AbortReasonOf(const absl::Status& status);

/// RESOURCE_EXHAUSTED that is no lack of memory in the cluster: the transaction reads or writes more than the
/// protocol takes. The same transaction fails so again.
absl::Status TooLargeStatus(std::string_view what);
bool IsTooLarge(const absl::Status& status);

/// RESOURCE_EXHAUSTED of Begin: the process has as many transactions under way as it may, and none of them
/// ended in time. Nothing has begun.
absl::Status TooManyAtOnceStatus(std::string_view what);
bool IsTooManyAtOnce(const absl::Status& status);

/// Gets a row's bytes, valid during the call; false: no more of them. Does not use the session.
using RowVisitor = std::function<bool(std::span<const std::byte> row)>;

/// Gets the key of a row that the transaction has written, and the row as it is now, or nothing if it is
/// deleted; otherwise as RowVisitor.
using WriteVisitor = std::function<bool(std::span<const std::byte> key, std::span<const std::byte> row)>;

/// What one Read looks up. A row begins with its key.
struct Lookup {
  static constexpr uint32_t kNotMet = ~uint32_t{0};
  TableHandle table;
  std::span<const std::byte> key;
  std::span<std::byte> row;  // of the table's row_bytes; filled if found
  bool found = false;
  uint32_t met = kNotMet;  // the row's number among those that the transaction has met, if there is one
};

/// What a transaction does to one row.
struct RowWrite {
  enum class Kind : uint8_t {
    kInsert,  // of a row whose key the snapshot does not hold
    kUpdate,  // of a row that the transaction has read; NOT_FOUND otherwise
    kDelete,  // likewise
    /// Likewise. Commit succeeds only if no other transaction changes the row between the snapshot and the
    /// commit. The row stays as it is. Counts as a write.
    kLock,
  };
  Kind kind = Kind::kInsert;
  TableHandle table;
  std::span<const std::byte> row;  // of kDelete and kLock its key alone
  uint32_t met = Lookup::kNotMet;  // as Read has said, if it is at hand: then the row is not looked for
};

/// What it has cost a session to begin transactions: to take their snapshots.
struct BeginCosts {
  uint64_t begins = 0;
  uint64_t verbs = 0;  // work requests
  uint64_t timed = 0;  // of the begins, those that
  int64_t ns = 0;      // was measured of, waits included

  BeginCosts operator+(const BeginCosts& more) const {
    return {begins + more.begins, verbs + more.verbs, timed + more.timed, ns + more.ns};
  }
};

/// A client's transactions, one at a time; used by one thread. Sees its own writes. Any error of the
/// transaction (ABORTED, ALREADY_EXISTS, UNAVAILABLE …) ends it: nothing of it stays, Begin starts the next.
/// The call that makes it too large says so (IsTooLarge), not Commit.
/// Only UNAVAILABLE from Commit leaves open whether it took effect.
class Session {
 public:
  virtual ~Session() = default;

  virtual absl::StatusOr<TableHandle> OpenTable(const std::string& name) = 0;

  /// Takes a snapshot.
  virtual absl::Status Begin() = 0;
  /// All of them in as few round trips as one of them. NOT finding a row is no error.
  virtual absl::Status Read(std::span<Lookup> lookups) = 0;
  /// Begin, and the transaction's first Read: for whoever knows by then what it reads. RSI saves a round trip
  /// by it.
  virtual absl::Status BeginAndRead(std::span<Lookup> lookups);
  /// In their order, as if each had a call of its own; but if one names a table that is not open, or has
  /// another size than its table's, none is done. Many in one call cost less than as many calls.
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
  /// Every row that the transaction sees, in no order. A row that is then to be changed must be read.
  virtual absl::Status Scan(TableHandle table, const RowVisitor& visit);
  /// The transaction's own writes to a table so far, each key once: what a scan of the snapshot by somebody
  /// else lacks, and which stored rows of it do not count.
  virtual absl::Status VisitWrites(TableHandle table, const WriteVisitor& visit);
  /// The rows whose keys in an ordered index of the table begin with something from `low` on and below `high`
  /// (empty: no bound), in the order of these keys; as Scan. An index is named by the allocation of its first
  /// extent. ABORTED: it was dropped.
  virtual absl::Status ScanIndex(TableHandle table, AllocationId index, std::span<const std::byte> low,
                                 std::span<const std::byte> high, const RowVisitor& visit);
  /// How long Write waits for one row, or Commit in all, for records that other clients have locked, and goes
  /// on if these give them back unchanged. 0, the default: it conflicts at once.
  virtual void SetLockTimeout(int64_t /*us*/) {}
  /// What one transaction may take of the client's memory for what it reads and writes; from the next Begin
  /// on.
  virtual void SetTransactionBytesMax(uint64_t) {}
  /// A place behind all that the transaction has written so far. It holds until one before it is rolled back
  /// to, or the transaction ends.
  virtual size_t Mark() const;
  /// What the transaction has written is again as it was at `mark`.
  virtual absl::Status RollBackTo(size_t mark);
  /// Too large (IsTooLarge) if no statement of the transaction can change that many rows, whichever they are.
  virtual absl::Status MayWrite(size_t /*rows*/) const { return absl::OkStatus(); }
  /// Its timestamp; 0 if nothing was written.
  virtual absl::StatusOr<uint64_t> Commit() = 0;
  virtual void Abort() = 0;

  /// The snapshot of the transaction under way: it sees commits up to it.
  virtual uint64_t snapshot() const = 0;
  /// Nothing, for a protocol that does not count.
  virtual BeginCosts begin_costs() const { return {}; }

  /// Between transactions, after the catalog's word on a table's indexes has changed: from then on every
  /// commit goes by it. A snapshot that holds all those that may have not.
  virtual absl::StatusOr<uint64_t> AwaitCommits();
  /// Between transactions: entries of all rows for an index that commits keep in step. The first snapshot
  /// that may use it. ALREADY_EXISTS: it is unique, and a key is there twice.
  virtual absl::StatusOr<uint64_t> FillIndex(TableHandle table, AllocationId index);

 private:
  absl::Status WriteOne(const RowWrite& write) { return Write({&write, 1}); }
};

}  // namespace nam::txn
