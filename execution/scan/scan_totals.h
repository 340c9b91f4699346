#pragma once

#include <cstdint>
#include <vector>

#include "execution/scan/piece_claims.h"
#include "execution/scan/row_selector.h"
#include "proto/compute.pb.h"
#include "storage/block_stream.h"

namespace nam::execution {

/// The work of a scan's tasks so far.
struct ScanTotals {
  uint64_t rows_in = 0;         // of the blocks that came
  ConditionCounts conditions;   // for a block scan: counts of these rows
  uint64_t skipped_blocks = 0;  // not READ, or without a row that passes their zones
  /// From the tasks' first calls to their ends, including downstream work. For fed blocks: until they are
  /// used up, plus the wait for them.
  int64_t total_ns = 0;
  storage::StreamCounters stream;
  uint64_t multicast_blocks = 0;     // the stream's blocks that came by multicast
  uint64_t repaired_blocks = 0;      // lost by multicast and READ
  uint64_t duplicate_datagrams = 0;  // brought nothing new
  /// By task that is not fed: positions of the pieces whose rows it has.
  std::vector<std::vector<uint32_t>> begun;
  uint32_t claims_made = 0;

  /// Adds a task that has ended. Without `claims`: it was fed.
  void Add(const ScanTotals& totals, const PieceClaims* claims);
  void AddStream(const storage::StreamCounters& counters);

  void Count(proto::PipelineCounters& out) const;
  void Report(proto::AttemptReply& out) const;
};

}  // namespace nam::execution
