#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/block.h"

namespace nam::partitioner {

/// The contents of a chain before it is cut into blocks.
struct ChainContents {
  uint64_t rows = 0;
  std::vector<uint8_t> widths;  // of all columns
  /// Text bytes per row, in the chain's order: one entry per column, empty unless the column is plain text.
  std::vector<std::vector<uint32_t>> text_bytes;
};

/// The planned blocks of a chain.
struct ChainPlan {
  uint32_t block_rows = 0;           // maximum per block
  uint32_t pointer_slots = 0;        // of each block
  uint32_t block_bytes = 0;          // of each block
  std::vector<uint32_t> text_bytes;  // by column, as in storage::BlockLayout
  std::vector<uint64_t> ends;        // by block: the row after its last one
  std::vector<uint64_t> pointers;    // by block; filled in by the writer

  uint64_t rows() const { return ends.empty() ? 0 : ends.back(); }
  uint32_t blocks() const { return static_cast<uint32_t>(ends.size()); }
};

/// Cuts a chain into the fewest blocks of at most `block_bytes`, with about equally many rows: a block closes
/// when it has block_rows rows, or the next row's text does not fit its page. Pages of plain texts are sized
/// for the average of the chain's rows, and at least for the longest text. If a row does not fit such a
/// block, blocks are larger, up to kMaxLongBlockBytes; 54000 if it does not fit these, either.
absl::StatusOr<ChainPlan> PlanChain(const ChainContents& contents, uint32_t block_bytes,
                                    uint32_t pointer_group);

}  // namespace nam::partitioner
