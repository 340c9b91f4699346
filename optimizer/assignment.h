#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/stage_tables.h"
#include "partitioner/pieces.h"
#include "proto/table.pb.h"

namespace nam::optimizer {

/// Assigns the pieces of the driving table to the servers that stream them (I-Store, section 4.1). Its cost
/// is the bytes moved: those of the driving table, and of the build sides for every server that needs them.
struct Assignment {
  struct Share {
    std::vector<partitioner::Piece> pieces;  // ascending
    uint64_t driving_bytes = 0;
    uint64_t build_bytes = 0;
    uint64_t rows = 0;
  };
  std::vector<Share> servers;
  uint64_t LargestBytes() const;
  uint64_t LargestRows() const;
};

/// Takes the better of two: the largest differencing method on single partitions (most even), and runs of
/// partitions in order of their parts by the key of the largest build side, then by the others (least
/// replication). If the better one is uneven, because partitions are larger than a fair share, or few, tries
/// the same with large ones cut into pieces, and takes that if it spares the most loaded server more than the
/// replication costs. Also cuts, within a server, pieces larger than a fraction of the fair share of its
/// `threads`.
Assignment Assign(const StageTables& stage, int servers, int threads = 1);

/// Assigns a driving table of records, which already comes in pieces of one kind: each server gets a run of
/// them, of about equally many rows.
Assignment AssignRecords(const StageTables& stage, const std::vector<partitioner::Piece>& pieces,
                         int servers);

/// K-way number partitioning by the largest differencing method: returns the part of each item.
std::vector<int> LargestDifferencing(const std::vector<uint64_t>& costs, int parts);

}  // namespace nam::optimizer
