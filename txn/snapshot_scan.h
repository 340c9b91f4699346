#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "storage/channel.h"
#include "storage/record_block.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/record_blocks.h"
#include "txn/record_layout.h"
#include "txn/tables.h"

/// Reads the rows of a record table that a snapshot sees, with or without a client slot.
///
/// A block's own words tell what a snapshot sees in it (storage/record_block.h, docs/design/transactions.md),
/// so a reader needs no slot for that:
///
///     met in a block                            the row at snapshot S
///     newest version at or below S              that version, locked or not, but for the next line
///     locked, and beside it a version that is   the holder's slot is READ, then the block again: the version
///     newer and not above S                     counts only if the slot was committing just this timestamp
///     newest version above S                    an older slot; kTooOld if it was replaced
///     the version is in the slot that the       READ again until the lock is gone; after kRoundsMax rounds
///     holder of the lock may be writing to      it counts as too old. A session recovers a dead holder;
///                                               readers without a slot neither fence nor recover
///     no version yet                            no row
///
/// A block does not tell whether S still protects rows that were deleted after it: their blocks may be free
/// and reused. A session's own slot keeps them during its transaction. A reader without a slot relies on the
/// slot of the session that lent it the snapshot, and that session may be gone. It therefore READs the
/// horizon after each batch of blocks. A block is freed only after the horizon was raised to its deletion, so
/// while the horizon is not above S, nothing that S sees had been freed when the blocks were READ. Above S it
/// cannot tell, and the scan fails with kSnapshotTooOld, which is retryable.
namespace nam::txn {

/// The point in time at which blocks are judged.
struct ReadAt {
  uint64_t snapshot = 0;
  ExtentSpace* state = nullptr;  // the transaction state; tells what a lock's holder commits
  /// CANCELLED soon after it is set. May be null.
  const std::atomic<bool>* cancel = nullptr;
  bool torn = false;  // blocks are used despite moving headers: RsiOptions::Broken
  /// Recovers the holder of a lock that blocks wait for, if it is dead. Null: the reader has no client slot.
  const std::function<absl::Status(uint32_t client)>* recover = nullptr;
};

/// Asks the clients that hold these blocks' locks what they are committing. READ the blocks again afterwards.
absl::Status AskHolders(storage::VerbBatch& batch, ExtentSpace& state, std::span<BlockRead* const> blocks);

/// Chooses the version that the snapshot sees in a block that was READ.
storage::VersionChoice ChooseVersion(const RecordBlocks& from, const BlockRead& block, const ReadAt& at);

/// READs blocks, with the slots that the snapshot sees, until none has moved meanwhile. Gives scratch memory
/// to blocks that have none. ABORTED (kSnapshotTooOld): a version was replaced, or never stands still.
absl::Status ReadVersions(const RecordBlocks& from, std::span<BlockRead> blocks, const ReadAt& at,
                          Clock& clock);

/// Reads the visible rows of runs of chunks, a batch of blocks at a time. One thread, whose batch it shares.
///
///     Start(run) ─▶ Next ─▶ rows ─▶ Next ─▶ … ─▶ no rows ─▶ Start(run) …
class SnapshotScan {
 public:
  /// Consecutive chunks of one extent.
  struct Run {
    uint64_t extent = 0;
    uint64_t first_chunk = 0;  // of the extent
    uint64_t chunks = 0;
  };
  struct Options {
    ReadAt at;
    uint64_t window = kChunkRecords;  // blocks READ together, at least 1
    bool checks_horizon = false;  // for a reader without a slot; else the caller's own protects the snapshot
  };

  /// The scratch memory that a scan keeps until the caller resets the batch.
  static uint64_t ScratchOf(const RecordLayout& layout, uint64_t window);

  /// All references outlive the scan.
  SnapshotScan(const RecordBlocks& from, Clock& clock, const Options& options);

  /// The run lies within an extent. UNAVAILABLE: its memory is lost; OUT_OF_RANGE: there is no such extent.
  absl::Status Start(const Run& run);
  /// Returns the next rows, in no order: row_bytes at each pointer, in scratch memory, until the next call.
  /// None: the run is over. The caller may stop at any time. An error ends the use of the scan.
  absl::StatusOr<std::span<const std::byte* const>> Next();

  /// Blocks READ so far, with or without rows.
  uint64_t blocks_read() const { return blocks_read_; }

 private:
  /// Fills blocks_ with the records of the next batch.
  size_t Fill();
  absl::Status CheckHorizon();

  const RecordBlocks& from_;
  Clock& clock_;
  const Options options_;
  std::vector<BlockRead> blocks_;
  std::vector<const std::byte*> rows_;
  uint64_t* words_ = nullptr;    // scratch: words of the run's chunks
  uint64_t* horizon_ = nullptr;  // scratch
  Run run_;
  // Where the next batch begins:
  uint64_t chunk_ = 0;  // in the run
  uint64_t at_ = 0;     // record in the chunk
  uint64_t blocks_read_ = 0;
};

/// Reads a record table on one thread without a client slot. It changes and recovers nothing, so a member may
/// have one for each thread. Its extents are still opened with keys of the member: such a key ends with its
/// memory, so that READs of a dropped table fail. Blocks do not name their table; a key of the whole region
/// would read what lies there next.
class RecordReader {
 public:
  struct Options {
    uint64_t snapshot = 0;  // of a session whose transaction is under way
    const std::atomic<bool>* cancel = nullptr;
    uint64_t window_max = 1024;  // blocks READ together, if the channel's buffer has room
  };
  /// The reader has `channel` to itself. RESOURCE_EXHAUSTED: the channel's buffer is too small for a block.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const TableDescription& table,
                                                            const TransactionState& state,
                                                            storage::Channel& channel,
                                                            const Options& options);

  const RecordLayout& layout() const { return blocks_.layout(); }
  /// As SnapshotScan::Start. ABORTED (kSnapshotTooOld) also if the table was dropped.
  absl::Status Start(const SnapshotScan::Run& run);
  absl::StatusOr<std::span<const std::byte* const>> Next();
  uint64_t blocks_read() const { return scan_->blocks_read(); }
  /// Work requests posted so far.
  uint64_t requests() const { return batch_.requests_added(); }

 private:
  RecordReader(const TableDescription& table, storage::Channel& channel, ExtentSpace records,
               ExtentSpace state);
  /// Explains READs that failed for a reason beside the network.
  absl::Status Judge(const absl::Status& failed);

  storage::VerbBatch batch_;
  ExtentSpace records_, state_;
  const RecordBlocks blocks_;
  std::unique_ptr<SnapshotScan> scan_;
};

/// The layout of a table, without opening it.
RecordLayout LayoutOf(const TableDescription& table);

}  // namespace nam::txn
