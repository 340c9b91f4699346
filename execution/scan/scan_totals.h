#pragma once

#include <cstdint>
#include <vector>

#include "execution/scan/piece_claims.h"
#include "execution/scan/row_selector.h"
#include "storage/block_stream.h"

namespace nam::execution {

/// What the tasks of a scan have done so far.
struct ScanTotals {
  uint64_t rows_in = 0;         // of the blocks that came
  ConditionCounts conditions;   // of a block scan: what became of these rows
  uint64_t skipped_blocks = 0;  // not READ, or without a row that their zones let pass
  /// From the tasks' first calls to their ends, with what comes behind them. Of fed blocks: until they are
  /// used up, and until they came.
  int64_t total_ns = 0;
  storage::StreamCounters stream;
  uint64_t multicast_blocks = 0;     // of the stream's blocks: those that came by multicast
  uint64_t repaired_blocks = 0;      // lost by multicast and READ
  uint64_t duplicate_datagrams = 0;  // brought nothing new
  /// Of each task that is not fed: positions of the pieces whose rows it has.
  std::vector<std::vector<uint32_t>> begun;
  uint32_t claims_made = 0;

  /// Of a task that has ended. Without `claims`: it was fed.
  void Add(const ScanTotals& totals, const PieceClaims* claims);
  void AddStream(const storage::StreamCounters& counters);
};

}  // namespace nam::execution
