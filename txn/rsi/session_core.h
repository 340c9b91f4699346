#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"
#include "storage/record_block.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/rsi/client_log.h"
#include "txn/rsi/reclaimer.h"
#include "txn/rsi/record_table.h"
#include "txn/rsi/recovery.h"
#include "txn/rsi/session.h"
#include "txn/rsi/write_set.h"
#include "txn/tables.h"
#include "txn/timestamps/client_slot.h"
#include "txn/timestamps/commit_point.h"
#include "txn/timestamps/timestamps.h"

namespace nam::txn {

/// The transaction under way.
struct RsiTransaction {
  enum class Phase : uint8_t { kUndecided, kDeciding, kCommitted };

  bool active = false;
  uint64_t snapshot = 0;
  uint64_t timestamp = 0;      // claimed; 0: none
  uint64_t newest_judged = 0;  // version that a commit without a timestamp has met in its looks
  MetRows rows;
  WriteSet writes;
  uint64_t sorted_bytes = 0;  // own rows in the order of the index that was scanned last
  bool writing = false;       // from its claim, or what it prepares, to its decision or rollback
  bool locking = false;       // from the first lock to the last: an error leaves it to recovery
  bool flipping = false;      // the last commit's flips are in flight
  Phase phase = Phase::kUndecided;
  bool committed = false;  // stands even if a later step fails
};

/// The conflicts of this session with other clients.
struct Conflicts {
  struct Lock {
    uint32_t table = 0;
    uint64_t record = 0;
  };

  uint64_t newest = 0;           // version that this session has lost to
  uint32_t lost_to_locks = 0;    // transactions in a row
  uint32_t suspect = 0;          // the client that holds what this transaction wanted
  uint32_t snapshot_holder = 0;  // the client whose snapshot keeps blocks from being reclaimed
  std::optional<Lock> met_lock;  // another client's lock, held or released, that has stopped this commit try
};

/// The shared state of a session's parts: its connections, its slot, the open tables, and the transaction
/// under way. One thread. Every part holds references into it.
///
///     RsiClient ──┬─▶ Committer ──┬─▶ IndexKeeper, ReferencedRows ──┐
///                  ├─▶ LockWait ◀──┤                                 │
///                  ├─▶ RowReader ◀─┴─────────────────────────────────┤
///                  └─▶ SessionCore ◀─────────────────────────────────┘ (all of them)
struct SessionCore {
  /// The scratch memory that a commit takes for each write besides its row: log entry, words, and for an
  /// insert the buckets of its key.
  static constexpr uint64_t kCommitBytes = 192, kInsertBytes = 448;
  /// For one operation of an ordered index.
  static constexpr uint64_t kIndexScratchBytes = 64 * 1024;

  static absl::StatusOr<std::unique_ptr<SessionCore>> Open(Tables& tables, const RsiOptions& options);
  SessionCore(const SessionCore&) = delete;

  /// Called once, before anything else. RESOURCE_EXHAUSTED: all slots are used. After another error `slot`
  /// may still be this session's; recover it like a lost one.
  absl::Status ClaimSlot();

  /// Whether this client has opened the table.
  bool IsOpen(uint32_t number) const { return number < open.size() && open[number] != nullptr; }
  RecordTable& table(uint32_t number) { return *open[number]; }
  /// Opens the table unless it is open.
  absl::StatusOr<RecordTable*> TableOf(const TableDescription& description);
  /// Checks that so much more memory, plus the commit's share, is within the transaction's bounds.
  absl::Status CheckScratch(uint64_t bytes) const;
  /// Called again and again by a commit that writes: tells the clients that wait for it that it goes on.
  /// ABORTED if one has skipped it. Executes the batch from time to time.
  absl::Status GoOn();
  /// Whether a row that a commit looks at has changed after the commit's own timestamp. A commit without one
  /// notes the row's for the moment when it takes its own.
  bool ChangedLater(storage::RecordHeader found);
  /// Reports that another client was faster. Notes a lock's holder as the suspect, so that the session
  /// recovers it if it is gone.
  absl::Status Conflict(storage::RecordHeader found, uint32_t table, uint64_t record);

  Tables& tables;
  const RsiOptions options;
  const std::shared_ptr<storage::Channel> channel;  // shared with LostClients once the session is lost
  storage::VerbBatch batch;
  ExtentSpace state;
  LogSpace logs;
  const std::shared_ptr<SharedTimestamps> shared_timestamps;  // the process's
  const TimestampKind timestamp_kind;
  const StateGeometry geometry;
  ClientSlot slot;
  std::unique_ptr<ClientLog> log;
  std::unique_ptr<CommitPoint> commit_point;
  std::unique_ptr<Timestamps> timestamps;
  std::unique_ptr<Reclaimer> reclaimer;
  std::unique_ptr<Recovery> recovery;
  /// By the process's number of the table (TableNumbers); null if this client has not opened it.
  std::vector<std::unique_ptr<RecordTable>> open;
  /// Called with the table's number for every row of an indexed table whose block was freed. The session sets
  /// it.
  std::function<void(uint32_t table, uint64_t record, const std::byte* row, uint64_t deleted_at)> on_freed;

  RsiTransaction transaction;
  Conflicts conflicts;

 private:
  SessionCore(Tables& with, const RsiOptions& as, std::shared_ptr<storage::Channel> over, ExtentSpace at,
              const TransactionState& described);
  absl::StatusOr<uint32_t> Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                   std::vector<uint64_t>& freed);
  void NoteFreed(const RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at);
};

}  // namespace nam::txn
