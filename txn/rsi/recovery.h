#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/rsi/client_log.h"
#include "txn/rsi/intent_log.h"
#include "txn/rsi/record_table.h"
#include "txn/tables.h"
#include "txn/timestamps/client_slot.h"
#include "txn/timestamps/timestamps.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// Recovers a client that is lost, or whose member is gone: completes or undoes its transaction, and gives
/// back its chunks of records and its slot.
///
///     fence its member ─▶ take its slot's `recoverer` by CAS ─▶ skip what it has claimed, by CAS of its slot
///        ─▶ log, headers, versions ─▶ CAS forward or back ─▶ its timestamp done ─▶ its chunks given back
///        ─▶ slot recovered
///
/// The slot's word decides. The log may belong to the client's next transaction, which has claimed nothing
/// and may hold locks. A locked record goes forward only if the slot says committing(T) and the block has the
/// version of T above its header's; all others go back. Their victims are emptied, even without a new
/// version: the client's WRITE may have placed later bytes of the row, and not the word. Only the victim of a
/// record that the log calls only locked is whole.
///
/// A lost client's member lives, and no other process fences it. Its own process ends the client's
/// connections (LostClient) and marks the slot lost: from then on every client may recover it.
///
/// Memory servers may have died, too. Recovery skips and reports what lies on those that the catalog has
/// buried, and finishes the rest as the slot has decided. Slots do not outlive the state server, and neither
/// do transactions. A client that has not heard of a burial still goes by the slot, until that is reused:
/// docs/design/transactions.md. An unreachable server may come back with its contents, so recovery waits for
/// it. If the client's log went with its memory server, recovery searches the headers of all tables for its
/// locks.
///
/// One client recovers at a time. If it dies, it is fenced, and its successor finds the remaining work from
/// the same words. One thread; shares the session's channel, batch and scratch memory.
class Recovery {
 public:
  /// `table_of` opens the tables that logs name; its result stays valid.
  using TableOf = std::function<absl::StatusOr<RecordTable*>(const TableDescription&)>;
  Recovery(Tables& tables, ExtentSpace& state, LogSpace& logs, StateGeometry geometry,
           storage::VerbBatch& batch, Timestamps& timestamps, const ClientSlot& self, TableOf table_of);

  /// True: the slot's former client holds nothing any more. False: it is alive, another client recovers it,
  /// or this one asked a moment ago.
  absl::StatusOr<bool> TryRecover(uint32_t client);
  /// OK: the holder of an index's node (ordered_header::OwnerOf) can change nothing any more, recovered or
  /// not. Its slot may be another session's by now.
  absl::Status ConfirmGone(uint32_t owner);
  /// Recovers all clients that are lost, or whose members are gone. Returns their number.
  absl::StatusOr<int> RecoverAll();

  /// Marks a client of this process lost once its connections have ended. False: it holds nothing.
  absl::StatusOr<bool> Retire(const LostClient& lost);
  /// Retires and recovers the client. Notes whether its undecided commit happened, even if a later step
  /// fails; not if other clients took it for dead and its slot has a new user.
  absl::Status RecoverLost(LostClient& lost);

 private:
  absl::StatusOr<bool> Recover(uint32_t client);
  absl::StatusOr<bool> TakeOver(uint32_t client);
  absl::Status DecideAndFinish(LostClient& lost);
  absl::StatusOr<bool> FenceOwner(uint32_t client, uint64_t* owner_word);
  absl::Status Finish(uint32_t client, uint64_t owner_word, bool locks);
  /// Decides a slot's word that no other client changes any more; an error if it has already changed. The
  /// client can change nothing any more.
  absl::StatusOr<SlotWord> Decide(uint32_t client, SlotWord word);
  absl::Status FinishTransaction(uint32_t client, SlotWord fate, std::span<const LogEntry> entries);
  /// The entries of the log that begins at `first`. Empty if there is none, or if it is not whole. `locks`:
  /// the client may hold some, so that a search replaces a lost log.
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint32_t client, uint64_t first, bool locks);
  /// A log's entries for one table.
  struct Part {
    RecordTable* table = nullptr;
    std::vector<LogEntry> entries;
    size_t lost = 0;  // entries lost with their memory server
    /// As the catalog says now: this client may have opened the table before the dead one knew an index.
    std::vector<IndexDescription> described;
    std::vector<TableIndex*> indexes;  // those of them that are whole; OpenIndexes
    std::vector<std::unique_ptr<TableIndex>> opened;
  };
  absl::StatusOr<std::vector<Part>> PartsOf(std::span<const LogEntry> entries);
  void ReportLost(uint32_t client, std::span<const Part> parts, bool committed);
  /// A record that the client has locked, and the version that it has written there.
  struct Locked {
    LogEntry entry;
    uint64_t version = 0;   // its timestamp; 0: none
    uint32_t slot = 0;      // the slot that the client may have written to: the version's, or the victim
    uint32_t newest = 0;    // the slot of the version that the header names
    bool same_tag = false;  // an older version has the same tag: its client has made no index entry
    bool forward = false;   // it is committed
    bool frees = false;     // the block becomes free
  };
  /// Returns how many records were locked.
  absl::StatusOr<size_t> FinishTable(uint32_t client, Part& part, SlotWord fate);
  absl::StatusOr<std::vector<Locked>> FindLocked(uint32_t client, RecordTable& table,
                                                 std::span<const LogEntry> entries, SlotWord fate);
  /// `words`: of the record's slots.
  static void Judge(Locked& record, storage::VersionWords words, SlotWord fate);
  absl::Status RemoveKeys(RecordTable& table, std::span<const Locked> locked);
  // recovery_indexes.cc
  absl::Status RemoveIndexEntries(Part& part, std::span<const Locked> locked, SlotWord fate);
  absl::Status RemoveEntriesOf(Part& part, const Locked& locked);
  absl::Status OpenIndexes(Part& part);
  absl::Status GiveChunksBack(uint32_t client);
  // recovery_search.cc
  /// Replaces a lost log: finds all records that the client has locked.
  absl::StatusOr<std::vector<LogEntry>> SearchRecords(uint32_t client);
  absl::Status SearchChunk(RecordTable& table, uint64_t chunk, uint32_t client, std::vector<LogEntry>& found);
  absl::StatusOr<uint64_t> HashOfNewRow(RecordTable& table, uint64_t record);

  absl::StatusOr<uint64_t> ReadWord(uint64_t offset);
  /// Returns the word's former value.
  absl::StatusOr<uint64_t> Swap(uint64_t offset, uint64_t from, uint64_t to);

  Tables& tables_;
  ExtentSpace& state_;
  LogSpace& logs_;
  const StateGeometry geometry_;
  storage::VerbBatch& batch_;
  Timestamps& timestamps_;
  const SlotRecoverer self_;
  const TableOf table_of_;
  std::map<uint32_t, int64_t> again_ns_;  // by client: when to ask about it again
  uint32_t alive_ = 0;                    // the last member found alive
};

}  // namespace nam::txn
