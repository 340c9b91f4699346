#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/expression/program.h"
#include "execution/join/build_side.h"
#include "execution/scan/absorb.h"
#include "execution/scan/block_feed.h"
#include "execution/scan/piece_claims.h"
#include "execution/scan/row_selector.h"
#include "execution/scan/scan_totals.h"
#include "execution/task.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "proto/table.pb.h"
#include "storage/block_stream.h"
#include "storage/known_blocks.h"
#include "storage/multicast_stream.h"

namespace nam::execution {

/// Reads the blocks of a table's pieces and passes the rows that meet its conditions.
///
///     piece ─▶ BlockStream ─▶ block ─▶ RowSelector ─▶ row set 0 ─▶ general filters ─▶ partners ─▶ chunk
///               sort column unREAD      zones, sort cut,            Program             row sets 1, 2, …
///                                       code tests, keys
///
/// Emitted columns are codes in the block, which stays until the task is asked again. Passing rows of a
/// block's windows are gathered to one chunk. Absorbed probes look keys up among the code tests; the places
/// of their partners are computed for the remaining rows.
class BlockScan final : public Source {
 public:
  /// All columns as one group of chains encodes them.
  struct Group {
    std::vector<const CodeMeaning*> meanings;  // by slot
  };
  /// A probe that the scan has absorbed. The build side outlives the scan and is complete at the first Next.
  struct Probe {
    KeyLookup lookup;
    const BuildSide* build = nullptr;  // owns the lookup's table
  };
  struct Options {
    std::shared_ptr<const proto::Table> table;
    std::vector<uint32_t> columns;    // of the table, to READ; ascending. Slots number them
    plan::Schema schema;              // of the columns
    std::vector<plan::Expr> filters;  // all true
    std::vector<Group> groups;        // at least one; meanings outlive the scan
    std::vector<uint32_t> group_of;   // the group of each partition's chain; empty: the first
    std::vector<Probe> probes;
    std::vector<ScanOutput> outputs;  // the columns of the chunks
    /// The table's; shared with other queries. May be null.
    std::shared_ptr<storage::KnownBlocks> known;
    uint32_t window = 10;   // blocks in flight, if channels carry them
    bool in_place = false;  // as in storage::StreamOptions, like the next two
    bool verify = true;
    bool slow_start = false;
    MemoShare* memos = nullptr;  // the filters' memos; see Program::Compile
  };
  /// INVALID_ARGUMENT if columns, slots or pieces do not exist. The queue outlives the scan.
  static absl::StatusOr<std::unique_ptr<BlockScan>> Make(Options options, PieceQueue& queue);
  ~BlockScan() override;

  /// Uses the context's channels; the claim channel is needed if the queue has a counter.
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  /// Makes a task that claims and streams nothing: its blocks come by `feed`, which outlives it. Next returns
  /// kNeedInput when the block is used up and the feed is open. It needs no channels.
  std::unique_ptr<SourceTask> NewFedTask(TaskContext& context, BlockFeed& feed);
  /// Adds how fed tasks' blocks came, and the time spent waiting for them. Any thread.
  void AddReceived(const storage::MulticastCounters& counters, int64_t receiving_ns);
  std::unique_ptr<Chunk> NewChunk() const { return NewChunk(options_.outputs.size()); }
  std::unique_ptr<Chunk> NewChunk(size_t columns) const override;
  bool exhausted() const override { return queue_.exhausted(); }
  void Count(proto::PipelineCounters& out) const override;
  void Report(proto::AttemptReply& out) const override { totals().Report(out); }

  /// Over tasks that have ended. Any thread.
  ScanTotals totals() const;
  /// The number of filters that are not tests of codes, and of their nodes that are evaluated row by row.
  size_t general_filters() const { return programs_.size(); }
  size_t by_row_nodes() const;
  /// Of a slot's codes in the first group.
  const CodeMeaning* meaning(uint32_t slot) const { return options_.groups[0].meanings[slot]; }

 private:
  friend class BlockScanTask;
  BlockScan(Options options, PieceQueue& queue);
  absl::Status CheckColumns() const;
  absl::Status CheckSlots() const;
  absl::Status CheckPieces() const;
  absl::Status SplitFilters();
  int SortColumn() const;
  void Add(const ScanTotals& totals, const PieceClaims* claims);

  const Options options_;
  PieceQueue& queue_;
  int sort_column_ = -1;                                  // in the table
  std::vector<std::vector<ScanColumn>> columns_;          // by group, then slot
  std::vector<std::vector<SlotCondition>> conditions_;    // by group
  std::vector<std::unique_ptr<const Program>> programs_;  // the other filters, one each
  std::vector<uint8_t> filtered_;                         // by slot: a program reads it
  std::vector<KeyLookup> lookups_;                        // for the probes
  /// By probe: the row set of its partners; 0: nothing is fetched from them.
  std::vector<uint32_t> row_set_of_;
  uint32_t row_sets_ = 1;

  mutable Mutex mutex_;
  ScanTotals totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::execution
