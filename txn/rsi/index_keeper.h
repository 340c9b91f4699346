#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "txn/index/table_index.h"
#include "txn/rsi/row_reader.h"
#include "txn/rsi/session_core.h"

namespace nam::txn {

/// Keeps the ordered indexes of a session's tables in step with the catalog and with its commits.
///
///     AddReadChanges ─Execute─▶ CheckChanges     what the catalog has changed, once the commit has its claim
///     ClaimEntries ─▶ decided, or RemoveEntered   an entry for each new key
///         └─▶ CheckChanges ─▶ ClaimEntries        again, if the claim has come behind the entries
///     NoteDead ─▶ Clean, in a later commit    removes dead entries
class IndexKeeper {
 public:
  IndexKeeper(SessionCore& core, RowReader& reader)
      : core_(core),
        reader_(reader),
        tables_(core.tables),
        channel_(core.channel.get()),
        batch_(core.batch),
        state_(core.state),
        timestamps_(core.timestamps.get()),
        writes_(core.transaction.writes),
        transaction_(core.transaction) {}

  /// READs the count of index changes.
  absl::Status AddReadChanges();
  /// Runs after the claim. Asks the catalog if indexes have changed. ABORTED: a table that the transaction
  /// writes was dropped, or filled by a load, or is about to be. Forgets entries in indexes that went, or
  /// that may have gone.
  absl::Status CheckChanges();
  /// True if the count that was READ is the one that the session knows.
  bool unchanged() const { return *changes_seen_ == changes_; }
  absl::Status Refresh();
  /// Whether the table was dropped, as of the last Refresh.
  bool dropped(uint32_t table) const { return table < dropped_.size() && dropped_[table] != 0; }
  /// True if the next transaction has to Refresh.
  bool stale() const { return stale_; }
  void SetStale() { stale_ = true; }
  /// ABORTED: the index was dropped.
  absl::StatusOr<TableIndex*> IndexOf(uint32_t table, AllocationId index);

  /// Makes an entry for each new key of the transaction's writes, in indexes that have none of it.
  absl::Status ClaimEntries();
  absl::Status RemoveEntered();
  void ForgetEntered();

  /// `row`: the replacement of `before`; null: the record is free.
  void NoteDead(uint32_t table, uint64_t record, const std::byte* before, const std::byte* row,
                uint64_t since);
  absl::Status Clean();

 private:
  /// The entries that this commit makes in one index. Their keys lie in keys_.
  struct Entered {
    AllocationId allocation;      // the index's
    TableIndex* index = nullptr;  // until the index is dropped
    uint32_t table = 0;
    std::vector<OrderedIndex::Change> entries;
  };
  /// A dead entry: its record's version has another key by now.
  struct DeadEntry {
    AllocationId index;
    uint64_t record = 0;
    uint64_t since = 0;  // timestamp of the version with another key
    std::string key;
  };
  /// The dead entries of one table.
  struct DeadEntries {
    std::deque<DeadEntry> entries;  // the oldest first
    size_t noted = 0;               // entries added since the horizon was raised
  };

  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status CheckOpenToWrites();
  void ForgetDropped();
  absl::Status CollectEntries();
  absl::Status Enter(Entered& entered);
  absl::Status JudgeRivals(const Entered& entered);
  absl::Status JudgeRivals(const Entered& entered, std::span<OrderedIndex::Change> wanted);
  absl::Status JudgeRival(const Entered& entered, std::span<const std::byte> key, uint64_t record);

  // index_clean.cc
  absl::Status CleanTable(uint32_t table, size_t& left);
  absl::Status CleanEntry(uint32_t table, const DeadEntry& dead);

  SessionCore& core_;
  RowReader& reader_;
  Tables& tables_;
  storage::Channel* const channel_;
  storage::VerbBatch& batch_;
  ExtentSpace& state_;
  Timestamps* const timestamps_;
  WriteSet& writes_;
  const RsiTransaction& transaction_;

  uint64_t changes_ = 0;  // the change count that the open tables reflect
  bool stale_ = false;
  const uint64_t* changes_seen_ = nullptr;  // scratch
  std::vector<Entered> entered_;
  RowArena keys_;
  std::vector<DeadEntries> dead_;  // by table
  std::vector<uint8_t> dropped_;   // by table: 1 once the catalog has said so; final
  uint64_t horizon_ = 0;           // as last raised
};

}  // namespace nam::txn
