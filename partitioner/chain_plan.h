#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/block.h"

namespace nam::partitioner {

/// The contents of a chain that is to be cut into blocks.
struct ChainContents {
  uint64_t rows = 0;
  std::vector<uint8_t> widths;  // of all columns
  /// Bytes of each row's text, in the chain's order: an entry for each column, empty for those that are no
  /// plain text.
  std::vector<std::vector<uint32_t>> text_bytes;
};

/// A chain's blocks as they will be.
struct ChainPlan {
  uint32_t block_rows = 0;           // at most, of each block
  uint32_t pointer_slots = 0;        // of each block
  uint32_t block_bytes = 0;          // of each block
  std::vector<uint32_t> text_bytes;  // by column, as in storage::BlockLayout
  std::vector<uint64_t> ends;        // by block: the row behind its last one
  std::vector<uint64_t> pointers;    // by block: where it lies; filled in by its writer

  uint64_t rows() const { return ends.empty() ? 0 : ends.back(); }
  uint32_t blocks() const { return static_cast<uint32_t>(ends.size()); }
};

/// Cuts a chain into as few blocks of at most `block_bytes` as its rows need, of about as many rows each: a
/// block closes when it has block_rows rows, or the next row's text does not fit its page. The pages of plain
/// texts are sized by what the chain's rows have on average, and at least for the longest one.
/// INVALID_ARGUMENT if a row does not fit a block.
absl::StatusOr<ChainPlan> PlanChain(const ChainContents& contents, uint32_t block_bytes,
                                    uint32_t pointer_group);

}  // namespace nam::partitioner
