#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

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

/// Cleans up after a client whose member is gone, or that its member has lost: completes or undoes the
/// transaction that it had under way, gives back its chunks of records and its slot.
///
///     fence its member ─▶ take its slot's `recoverer` by CAS ─▶ skip what it has claimed, by CAS of its slot
///        ─▶ log, headers, versions ─▶ CAS forward or back ─▶ its timestamp done ─▶ its chunks given back
///        ─▶ slot recovered
///
/// The slot's word decides. The log may be of the client's next transaction already, which has claimed
/// nothing and may have locked some: a record that is locked goes forward only if the slot says committing(T)
/// and the block has the version of T above its header's; every other goes back.
///
/// A lost client's member lives, and nobody else fences it; its own process does, by ending the client's
/// connections (LostClient), and says so in the slot: from then on everybody may recover it.
///
/// Memory servers may have died, too. What lies on those that the catalog has buried is skipped and reported,
/// and the rest is finished as the slot has decided; slots do not outlive the state server, and neither does
/// any transaction. A client that still reads a buried server, because it has not heard, goes by the slot,
/// too, until that is used anew: docs/design/transactions.md. A server that is merely out of reach may come
/// back with what it holds, so recovery waits for it. If the client's log went with its memory server, the
/// headers of all tables are looked through for its locks.
///
/// One recovers at a time; one that dies in between is fenced and followed by another, who finds what is left
/// to do from the same words. One thread; shares the session's channel, batch and scratch memory.
class Recovery {
 public:
  /// `table_of` opens the tables that logs name; its result stays valid.
  using TableOf = std::function<absl::StatusOr<RecordTable*>(const TableDescription&)>;
  Recovery(Tables& tables, ExtentSpace& state, LogSpace& logs, StateGeometry geometry,
           storage::VerbBatch& batch, Timestamps& timestamps, const ClientSlot& self, TableOf table_of);

  /// True: the slot's former client holds nothing any more. False: it is alive, or somebody else recovers it,
  /// or it was asked about a moment ago.
  absl::StatusOr<bool> TryRecover(uint32_t client);
  /// OK: who holds a node of an index (ordered_header::OwnerOf) can change nothing any more, whether it has
  /// been recovered or not. Its slot may be another session's by now.
  absl::Status ConfirmGone(uint32_t owner);
  /// All clients of members that are gone, and those that are lost; how many there were.
  absl::StatusOr<int> RecoverAll();

  /// Says of a client of this process, whose connections have ended, that it is lost. False: it holds
  /// nothing.
  absl::StatusOr<bool> Retire(const LostClient& lost);
  /// The same, and recovers it. Notes whether what it was deciding was committed, also if it fails behind
  /// that; not if others have believed it to be gone, and somebody has its slot by now.
  absl::Status RecoverLost(LostClient& lost);

 private:
  absl::StatusOr<bool> Recover(uint32_t client);
  absl::StatusOr<bool> TakeOver(uint32_t client);
  absl::StatusOr<bool> FenceOwner(uint32_t client, uint64_t* owner_word);
  absl::Status Finish(uint32_t client, uint64_t owner_word, bool locks);
  /// What becomes of a slot's word, once nobody else can change it; an error if it has changed already. The
  /// client can change nothing any more.
  absl::StatusOr<SlotWord> Decide(uint32_t client, SlotWord word);
  absl::Status FinishTransaction(uint32_t client, SlotWord fate, std::span<const LogEntry> entries);
  /// The entries of the log that begins at `first`. Empty if there is none, or if it is not whole. `locks`:
  /// the client may hold some, so that a lost log is replaced by a search.
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint32_t client, uint64_t first, bool locks);
  /// What a log says of one table.
  struct Part {
    RecordTable* table = nullptr;
    std::vector<LogEntry> entries;
    size_t lost = 0;  // entries that went with their memory server
  };
  absl::StatusOr<std::vector<Part>> PartsOf(std::span<const LogEntry> entries);
  void ReportLost(uint32_t client, std::span<const Part> parts, bool committed);
  /// A record that the client has locked, and the version that it has written there.
  struct Locked {
    LogEntry entry;
    uint64_t version = 0;  // its timestamp; 0: none
    uint32_t slot = 0;     // where it is
    bool same_tag =
        false;  // in indexes, as an older version there: its client has found that, and made no entry
    bool forward = false;  // it is committed
    bool frees = false;    // the block becomes free
  };
  /// How many records were locked.
  absl::StatusOr<size_t> FinishTable(uint32_t client, RecordTable& table, std::span<const LogEntry> entries,
                                     SlotWord fate);
  absl::StatusOr<std::vector<Locked>> FindLocked(uint32_t client, RecordTable& table,
                                                 std::span<const LogEntry> entries, SlotWord fate);
  absl::Status RemoveKeys(RecordTable& table, std::span<const Locked> locked);
  absl::Status RemoveIndexEntries(RecordTable& table, const Locked& locked);
  absl::Status GiveChunksBack(uint32_t client);
  // recovery_search.cc
  /// Replaces a lost log: finds all records that the client has locked.
  absl::StatusOr<std::vector<LogEntry>> SearchRecords(uint32_t client);
  absl::Status SearchChunk(RecordTable& table, uint64_t chunk, uint32_t client, std::vector<LogEntry>& found);
  absl::StatusOr<uint64_t> HashOfNewRow(RecordTable& table, uint64_t record);

  absl::StatusOr<uint64_t> ReadWord(uint64_t offset);
  /// What the word was.
  absl::StatusOr<uint64_t> Swap(uint64_t offset, uint64_t from, uint64_t to);

  Tables& tables_;
  ExtentSpace& state_;
  LogSpace& logs_;
  const StateGeometry geometry_;
  storage::VerbBatch& batch_;
  Timestamps& timestamps_;
  const SlotRecoverer self_;
  const TableOf table_of_;
  std::map<uint32_t, int64_t> again_ns_;  // by client: when it may be asked about again
  uint32_t alive_ = 0;                    // the last member that was
};

}  // namespace nam::txn
