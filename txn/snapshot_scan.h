#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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

/// Reading the rows of a record table that a snapshot sees, with or without a client slot.
///
/// What a block says of a snapshot (storage/record_block.h, docs/design/transactions.md) is decided by its
/// own words, so no reader needs a slot for it:
///
///     met in a block                            the row at snapshot S
///     newest version at or below S              that version, locked or not, but for the next line
///     locked, and beside it a version that is   the holder's slot is READ, then the block again: the version
///     newer and not above S                     counts only if the slot was committing just this timestamp
///     newest version above S                    an older slot; kTooOld if it was replaced
///     the version is in the slot that the       READ again until the lock is gone; after kRoundsMax rounds
///     holder of the lock may be writing to      it counts as too old. Readers neither fence nor recover
///     no version yet                            no row
///
/// What no block says is whether S still protects rows that were deleted after it: their blocks may be free,
/// and used again. A session's own slot keeps them, as long as its transaction lasts. A reader without a slot
/// relies on the slot of the session that lent it the snapshot, and that session may be gone. It therefore
/// READs the horizon behind each batch of blocks. A block is freed only after the horizon was raised to its
/// deletion, so while the horizon is not above S, nothing that S sees had been freed when the blocks were
/// READ. Above S it cannot tell, and the scan fails with kSnapshotTooOld, which is retryable.
namespace nam::txn {

/// Where in time blocks are judged.
struct ReadAt {
  uint64_t snapshot = 0;
  ExtentSpace* state = nullptr;  // the transaction state: where who holds a lock is asked
  /// CANCELLED soon after it is set. May be null.
  const std::atomic<bool>* cancel = nullptr;
  bool torn = false;  // blocks are used whatever their headers say: RsiOptions::Broken
};

/// Asks the clients that have these blocks locked what they are committing; the blocks are to be READ again.
absl::Status AskHolders(storage::VerbBatch& batch, ExtentSpace& state, std::span<BlockRead* const> blocks);

/// What the snapshot sees of a block that was READ.
storage::VersionChoice ChooseVersion(const RecordBlocks& from, const BlockRead& block, const ReadAt& at);

/// READs blocks, with the slots that the snapshot sees, until none of them has moved meanwhile. Those without
/// scratch memory get some. ABORTED (kSnapshotTooOld): a version was replaced, or never stands still.
absl::Status ReadVersions(const RecordBlocks& from, std::span<BlockRead> blocks, const ReadAt& at,
                          Clock& clock);

/// The visible rows of runs of chunks, a batch of blocks at a time. One thread, whose batch it shares.
///
///     Start(run) ─▶ Next ─▶ rows ─▶ Next ─▶ … ─▶ no rows ─▶ Start(run) …
class SnapshotScan {
 public:
  /// Chunks in a row of one extent.
  struct Run {
    uint64_t extent = 0;
    uint64_t first_chunk = 0;  // of the extent
    uint64_t chunks = 0;
  };
  struct Options {
    ReadAt at;
    uint64_t window = kChunkRecords;  // blocks that are READ together, at least 1
    bool checks_horizon = false;  // of a reader without a slot; else the caller's own protects the snapshot
  };

  /// The scratch memory that a scan keeps until the caller resets the batch.
  static uint64_t ScratchOf(const RecordLayout& layout, uint64_t window);

  /// All that is referred to outlives the scan.
  SnapshotScan(const RecordBlocks& from, Clock& clock, const Options& options);

  /// The run lies within an extent. UNAVAILABLE: its memory is lost; OUT_OF_RANGE: there is no such extent.
  absl::Status Start(const Run& run);
  /// The next rows, in no order: row_bytes at each pointer, in scratch memory, until the next call. None: the
  /// run is over. The caller may stop at any time. After an error the scan is of no more use.
  absl::StatusOr<std::span<const std::byte* const>> Next();

  /// That were looked at, whether they hold rows or not.
  uint64_t blocks_read() const { return blocks_read_; }

 private:
  /// Records of the next batch, into blocks_.
  size_t Fill();
  absl::Status CheckHorizon();

  const RecordBlocks& from_;
  Clock& clock_;
  const Options options_;
  std::vector<BlockRead> blocks_;
  std::vector<const std::byte*> rows_;
  uint64_t* words_ = nullptr;    // scratch: of the run's chunks
  uint64_t* horizon_ = nullptr;  // scratch
  Run run_;
  // Where the next batch begins:
  uint64_t chunk_ = 0;  // of the run
  uint64_t at_ = 0;     // record of the chunk
  uint64_t blocks_read_ = 0;
};

/// A record table as one thread reads it without a client slot: it changes nothing and recovers nobody, so
/// any member may have as many as it has threads. Its extents are opened with keys of the member all the
/// same: such a key ends with the memory that it is for, so that a READ of a table that was dropped fails.
/// Blocks say nothing of the table that they belong to, and a key of the whole region would read what lies
/// there next.
class RecordReader {
 public:
  struct Options {
    uint64_t snapshot = 0;  // of a session whose transaction is under way
    const std::atomic<bool>* cancel = nullptr;
    uint64_t window_max = 1024;  // blocks READ together, as far as the channel's buffer has room
  };
  /// The reader has `channel` to itself. RESOURCE_EXHAUSTED: a block does not fit the channel's buffer.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const TableDescription& table,
                                                            const TransactionState& state,
                                                            storage::Channel& channel,
                                                            const Options& options);

  const RecordLayout& layout() const { return blocks_.layout(); }
  /// As SnapshotScan's. ABORTED (kSnapshotTooOld) also if the table was dropped.
  absl::Status Start(const SnapshotScan::Run& run);
  absl::StatusOr<std::span<const std::byte* const>> Next();
  uint64_t blocks_read() const { return scan_->blocks_read(); }
  /// Work requests that it has posted.
  uint64_t requests() const { return batch_.requests_added(); }

 private:
  RecordReader(const TableDescription& table, storage::Channel& channel, ExtentSpace records,
               ExtentSpace state);
  /// Why READs may fail beside the network.
  absl::Status Judge(const absl::Status& failed);

  storage::VerbBatch batch_;
  ExtentSpace records_, state_;
  const RecordBlocks blocks_;
  std::unique_ptr<SnapshotScan> scan_;
};

/// Of a table, without opening it.
RecordLayout LayoutOf(const TableDescription& table);

}  // namespace nam::txn
