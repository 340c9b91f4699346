#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/verb_batch.h"
#include "txn/rsi/client_log.h"
#include "txn/rsi/record_table.h"
#include "txn/timestamps/timestamps.h"

namespace nam::txn {

/// Frees the blocks whose rows every snapshot sees as deleted.
///
///     horizon raised ─▶ log: what will be freed ─▶ locks by CAS ─▶ keys out of the index
///        ─▶ version words 0, the deletion's last ─▶ header 0 by CAS
///
/// Recovery frees what a dead client has locked for this. Runs between the writes of transactions: it uses
/// the commit's log. One thread, whose batch it shares.
class Reclaimer {
 public:
  /// Called for every row of an indexed table whose block was freed.
  using OnFreed =
      std::function<void(RecordTable& table, uint64_t record, const std::byte* row, uint64_t deleted_at)>;
  Reclaimer(ClientLog& log, storage::VerbBatch& batch, Timestamps& timestamps, uint32_t client,
            OnFreed on_freed)
      : log_(log), batch_(batch), timestamps_(timestamps), client_(client), on_freed_(std::move(on_freed)) {}

  /// Frees as many of `records`, all in one chunk of this client, as it can; adds them to `freed`. Returns
  /// the number of deleted rows that a snapshot still sees.
  absl::StatusOr<uint32_t> Reclaim(RecordTable& table, std::span<const uint64_t> records,
                                   std::vector<uint64_t>& freed);
  /// The client whose snapshot has kept blocks from being freed; 0: none.
  uint32_t held_by() const { return held_by_; }

 private:
  struct DeadRow;
  absl::StatusOr<std::vector<DeadRow>> FindDeadRows(RecordTable& table, std::span<const uint64_t> records,
                                                    uint64_t horizon, uint32_t& unripe);
  absl::Status HashKeys(RecordTable& table, std::span<DeadRow> dead_rows);
  absl::Status Announce(RecordTable& table, std::span<const DeadRow> dead_rows);
  absl::Status Lock(RecordTable& table, std::vector<DeadRow>& dead_rows);
  absl::Status Free(RecordTable& table, std::span<const DeadRow> dead_rows);

  ClientLog& log_;
  storage::VerbBatch& batch_;
  Timestamps& timestamps_;
  const uint32_t client_;
  const OnFreed on_freed_;
  uint32_t held_by_ = 0;
};

}  // namespace nam::txn
