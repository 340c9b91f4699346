#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "execution/scan/block_scan.h"

namespace nam::execution {

/// One thread's share of a scan: the source of its blocks, its selectors and its remaining rows of the
/// current block. Always fills the same chunk.
class BlockScanTask final : public SourceTask {
 public:
  /// Without a feed it streams the blocks of the pieces that it claims. The feed outlives the task.
  BlockScanTask(BlockScan& scan, TaskContext& context, BlockFeed* feed);
  ~BlockScanTask() override;

  Step Next(TaskContext& context, Chunk& out) override;
  void Stop() override;

 private:
  /// Runs once, when the build sides are complete: makes selectors, the chunk's columns and the stream.
  void Begin(TaskContext& context, Chunk& out);
  void MakeSelectors();
  void MakeColumns(Chunk& out);
  void OpenStream(TaskContext& context);
  std::optional<storage::ChainStart> NextChain();
  /// Gives up the stream and reports the work done. Does nothing the second time.
  void End();

  /// Gathers passing rows of the block that are not in a chunk yet, at most kChunkRows, into row set 0.
  uint32_t Gather(TaskContext& context);
  /// kHaveMore: there is a block. kNeedInput: the feed has none now.
  Step NextBlock(TaskContext& context);
  Step StreamBlock(TaskContext& context);
  Step TakeFedBlock();
  /// The time since the previous fed block was taken belongs to that block.
  void CountFedTime();
  uint32_t GroupOfBlock() const;
  void EnterGroup(uint32_t group);
  void SetBases(uint32_t rows);
  /// Reads the plain values of a slot at these positions of the chunk.
  /// DATA_LOSS: the block is damaged.
  absl::Status TakePlain(uint32_t slot, Selection selection);
  /// Passes `rows` gathered ones through the general filters, and finds their partners. kNeedInput: none is
  /// left.
  Step Complete(TaskContext& context, uint32_t rows);
  void FetchPartners(TaskContext& context, Selection selection);

  /// A chunk's column that lies in the block.
  struct PageColumn {
    Column* column;
    uint32_t slot;
    uint32_t number;  // in the block
  };
  /// The values of a plain column at the positions of the chunk.
  struct PlainColumn {
    std::vector<std::string_view> texts;  // kChunkRows, like the others; one of these three is used
    std::vector<__int128> numbers;
    std::vector<int64_t> narrow_numbers;
    std::vector<uint8_t> nulls;  // empty: the column has none
    bool words = false;          // the numbers are words of numerics (types/numeric.h)
  };
  static Column PlainColumnOf(const CodeMeaning& meaning, PlainColumn& values);
  /// A lookup whose partners' rows are needed.
  struct Partners {
    const DirectTable* table;
    uint32_t slot;
    uint32_t number;  // in the block
    uint32_t* rows;   // row set of the chunk
  };

  BlockScan& scan_;
  BlockFeed* const feed_;              // nullptr: blocks are streamed
  std::optional<PieceClaims> claims_;  // without a feed
  Clock& clock_;
  std::vector<std::unique_ptr<RowSelector>> selectors_;  // by group
  std::vector<Frame> frames_;                            // for the general filters
  std::unique_ptr<storage::BlockStream> stream_;         // without a feed, from Begin to End
  bool ended_ = false;

  Chunk* out_ = nullptr;            // set by Begin
  Chunk read_;                      // all columns that are read, for the general filters; its rows are out_'s
  std::vector<PageColumn> pages_;   // the columns of out_ and, with general filters, of read_
  std::vector<PlainColumn> plain_;  // by slot; empty for slots with codes
  std::vector<Partners> partners_;
  uint32_t* rows_ = nullptr;        // row set 0 of out_
  uint32_t positions_[kChunkRows];  // those that general filters passed

  storage::BlockView block_;
  RowSelector* selector_ = nullptr;  // the block's group's
  uint32_t group_ = 0;
  uint64_t row_bytes_ = 0;  // read for each row
  bool bases_set_ = false;  // columns lead to this block …
  bool all_rows_ = false;   // … and to consecutive rows
  uint32_t left_over_ = 0;  // rows of the block from rows_[kChunkRows] on

  ScanTotals totals_;
  int64_t started_ns_ = 0;               // without a feed
  std::optional<int64_t> fed_block_ns_;  // when the fed block was taken
};

}  // namespace nam::execution
