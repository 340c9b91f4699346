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
  uint64_t timestamp = 0;  // claimed; 0: none
  MetRows rows;
  WriteSet writes;
  bool locking = false;   // from the first lock to the last: an error leaves it to recovery
  bool flipping = false;  // the last commit's flips are on their way
  Phase phase = Phase::kUndecided;
  bool committed = false;  // whatever failed behind that
};

/// What other clients have kept a session from.
struct Conflicts {
  struct Lock {
    uint32_t table = 0;
    uint64_t record = 0;
  };

  uint64_t newest = 0;           // version that this session has lost to
  uint32_t lost_to_locks = 0;    // transactions in a row
  uint32_t suspect = 0;          // the client that held what this transaction wanted
  uint32_t snapshot_holder = 0;  // the client whose snapshot keeps blocks from being reclaimed
  std::optional<Lock> met_lock;  // of another client: this try to commit has met it, or come behind it
};

/// What the parts of a session share: its connections, its slot with what that is used for, the tables that
/// are open, and the transaction under way. One thread. Every part holds references into it.
///
///     RsiClient ──┬─▶ Committer ──┬─▶ IndexKeeper, ReferencedRows ──┐
///                  ├─▶ LockWait ◀──┤                                 │
///                  ├─▶ RowReader ◀─┴─────────────────────────────────┤
///                  └─▶ SessionCore ◀─────────────────────────────────┘ (all of them)
struct SessionCore {
  /// Scratch memory that a commit takes for each write besides its row: log entry, words, and of an insert
  /// buckets of its key.
  static constexpr uint64_t kCommitBytes = 192, kInsertBytes = 448;

  static absl::StatusOr<std::unique_ptr<SessionCore>> Open(Tables& tables, const RsiOptions& options);
  SessionCore(const SessionCore&) = delete;

  /// Once, before anything else. RESOURCE_EXHAUSTED: all are used. After another error `slot` may still be
  /// this session's, and is to be settled like that of one that is lost.
  absl::Status ClaimSlot();

  /// That this client has opened it.
  bool IsOpen(uint32_t number) const { return number < open.size() && open[number] != nullptr; }
  RecordTable& table(uint32_t number) { return *open[number]; }
  /// Opens it unless it is open.
  absl::StatusOr<RecordTable*> TableOf(const TableDescription& description);
  /// So much more scratch memory, and what a commit will take, is within the transaction's bounds.
  absl::Status CheckScratch(uint64_t bytes) const;
  /// Another client was faster. If it is gone, the session's end has it cleaned up after, so that the next
  /// try succeeds.
  absl::Status Conflict(storage::RecordHeader found, uint32_t table, uint64_t record);

  Tables& tables;
  const RsiOptions options;
  const std::shared_ptr<storage::Channel> channel;  // with LostClients, once the session is lost
  storage::VerbBatch batch;
  ExtentSpace state;
  LogSpace logs;
  const std::shared_ptr<SharedTimestamps> shared_timestamps;  // of the process
  const TimestampKind timestamp_kind;
  const StateGeometry geometry;
  ClientSlot slot;
  std::unique_ptr<ClientLog> log;
  std::unique_ptr<CommitPoint> commit_point;
  std::unique_ptr<Timestamps> timestamps;
  std::unique_ptr<Reclaimer> reclaimer;
  std::unique_ptr<Recovery> recovery;
  /// By the process's number of the table (TableNumbers); null where this client has not opened it.
  std::vector<std::unique_ptr<RecordTable>> open;
  /// Gets every row of an indexed table whose block was freed, and the table's number. The session sets it.
  std::function<void(uint32_t table, uint64_t record, const std::byte* row, uint64_t deleted_at)> on_buried;

  RsiTransaction transaction;
  Conflicts conflicts;

 private:
  SessionCore(Tables& with, const RsiOptions& as, std::shared_ptr<storage::Channel> over, ExtentSpace at,
              const TransactionState& described);
  absl::StatusOr<uint32_t> Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                   std::vector<uint64_t>& freed);
  void Bury(const RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at);
};

}  // namespace nam::txn
