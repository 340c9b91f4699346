#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Records what every transaction of a run has read and written, for the checker
/// (txn/check/history_checker.h). Each session writes a history of its own, so recording takes no lock:
///
///     chunk        "nam-hist" (8) │ format (8) │ bytes (8) │ loaded until (8) │ transaction* │ 0…
///     transaction  length of what follows (4) │ checksum (4) │ commit timestamp (8) │ outcome (1) │
///                  snapshot (v) │ operation*
///     operation    kind, what is known of the version (1) │ table (1) │ key (d) │ value (d) │ version (v)
///
/// The checksum covers the length, the snapshot and the operations. (v) is a variable-length integer, (d) a
/// difference of that encoding: keys to the table's last one, values to the last one written or read. Known
/// versions are stored as distances below the snapshot. A checkout with its 3 reads and 7 writes takes 80
/// bytes. Commit timestamp and outcome have fixed places: a transaction is written before its commit begins,
/// as unknown, and decided in place. So it is recorded even if its client dies.
namespace nam::txn {

enum class Outcome : uint8_t {
  kUnknown,  // its client died, or did not learn the commit's outcome
  kCommitted,
  kAborted,
};
enum class OperationKind : uint8_t { kRead, kInsert, kUpdate, kDelete, kLock };
constexpr bool IsWrite(OperationKind kind) {
  return kind == OperationKind::kInsert || kind == OperationKind::kUpdate || kind == OperationKind::kDelete;
}

/// Names a record in histories: table (8 bits), key (56). Keys that do not fit are hashed. Two keys that
/// collide would look like one record; 56 bits make that unlikely.
uint64_t RecordId(uint8_t table, std::span<const std::byte> key);
uint64_t RecordId(uint8_t table, uint64_t key);

/// The commit timestamp of a version that was read, if the protocol does not tell it.
inline constexpr uint64_t kVersionNotTold = ~uint64_t{0};
/// The value of a missing or deleted row.
inline constexpr uint64_t kNoValue = 0;

struct Operation {
  OperationKind kind = OperationKind::kRead;
  uint64_t record = 0;
  /// Names the write: unique in the history, and kept in the row, so that a read tells which write it saw. A
  /// reader records a digest instead if the row's other bytes are not as that write made them. A lock has the
  /// value that its transaction read.
  uint64_t value = kNoValue;
  uint64_t version = kVersionNotTold;  // read version; at most the snapshot, if told

  bool operator==(const Operation&) const = default;
};

/// A transaction's operations, in the order in which they were done. Reads of its own writes may be left out.
struct TransactionRecord {
  uint64_t snapshot = 0;
  uint64_t commit = 0;  // timestamp; 0: nothing written, aborted, or unknown
  Outcome outcome = Outcome::kUnknown;
  std::vector<Operation> operations;

  bool operator==(const TransactionRecord&) const = default;
};

/// The bytes of one session's history: in memory, or in a file, which survives its process. One thread
/// appends. Readers start after that thread has finished or died.
class SessionHistory {
 public:
  static std::unique_ptr<SessionHistory> InMemory();
  /// Creates the file. `loaded_until` is CheckOptions::loaded_until for the check of this file.
  static absl::StatusOr<std::unique_ptr<SessionHistory>> InFile(const std::string& path,
                                                                uint64_t loaded_until = 0);
  /// INVALID_ARGUMENT: not a history, or one of another format. DATA_LOSS: the file is truncated or damaged;
  /// the message says where. A file whose process died is valid.
  static absl::StatusOr<std::unique_ptr<SessionHistory>> Load(const std::string& path);
  ~SessionHistory();
  SessionHistory(const SessionHistory&) = delete;
  SessionHistory& operator=(const SessionHistory&) = delete;

  /// Returns `bytes` of zeroed memory that never moves. Null if the file cannot grow.
  std::byte* Append(size_t bytes);
  /// The chunks, each cut to the transactions that it holds.
  std::vector<std::span<const std::byte>> chunks() const;
  /// Bytes of all chunks, used or not.
  size_t bytes() const;
  uint64_t loaded_until() const { return loaded_until_; }

 private:
  SessionHistory(int fd, uint64_t loaded_until) : fd_(fd), loaded_until_(loaded_until) {}
  absl::Status Grow(size_t bytes);
  absl::Status LoadChunk(const std::string& path, size_t left, bool* used);

  int fd_;  // -1: in memory
  uint64_t loaded_until_;
  std::vector<std::span<std::byte>> chunks_;
  size_t used_ = 0;  // in the last chunk
  size_t file_bytes_ = 0;
};

/// Records a session's transactions, one at a time:
///
///     Begin ─▶ Read, Write* ─▶ Committing ─▶ RecordOutcome
///                    └─▶ End: aborted
///
/// A transaction without an outcome stays unknown, whatever the session does next. Used by the session's
/// thread.
class HistoryRecorder {
 public:
  /// `session`: unique in the run, below 2^23. `history` outlives the recorder.
  HistoryRecorder(uint32_t session, SessionHistory& history) : session_(session), history_(history) {}

  /// Returns the value for the next row that is written; unique in the run, and never kNoValue.
  uint64_t NextValue() { return (uint64_t{session_} + 1) << 40 | ++values_; }

  /// Begins a transaction. One that neither ends nor begins to commit is recorded as aborted.
  void Begin(uint64_t snapshot);
  void Read(uint64_t record, uint64_t value, uint64_t version = kVersionNotTold);
  void Write(OperationKind kind, uint64_t record, uint64_t value);
  /// `value`: as the transaction has read it, and not changed.
  void Lock(uint64_t record, uint64_t value);
  /// `commit`: the timestamp, if it is already known.
  void Committing(uint64_t commit = 0);
  /// Ends a transaction that has not begun to commit. Does nothing if its Begin failed.
  void End(Outcome outcome, uint64_t commit);
  /// Records the commit's outcome.
  void RecordOutcome(Outcome outcome, uint64_t commit);
  /// Records a complete transaction.
  void Record(const TransactionRecord& transaction);
  /// False once a write has failed: the history is incomplete.
  bool complete() const { return complete_; }

 private:
  void PutOperation(const Operation& operation);
  void Append(Outcome outcome, uint64_t commit);

  const uint32_t session_;
  SessionHistory& history_;
  uint64_t values_ = 0;
  bool complete_ = true;

  // The transaction under way: its encoding so far, and its place once it has one.
  std::vector<std::byte> encoded_;
  std::byte* place_ = nullptr;
  bool open_ = false;
  bool committing_ = false;
  uint64_t snapshot_ = 0;

  // The bases of differences.
  uint64_t last_key_[256] = {};
  uint64_t last_value_[2] = {};  // read or locked, written
};

/// Reads a history's transactions in order.
class HistoryReader {
 public:
  explicit HistoryReader(const SessionHistory& history) : chunks_(history.chunks()) {}

  /// False at the end. Reuses the vector's memory.
  bool Next(TransactionRecord& transaction);

 private:
  bool Seek(size_t bytes);

  std::vector<std::span<const std::byte>> chunks_;
  size_t chunk_ = 0;
  size_t at_ = 0;
  uint64_t last_key_[256] = {};
  uint64_t last_value_[2] = {};
};

}  // namespace nam::txn
