#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/plan.h"
#include "partitioner/pieces.h"
#include "proto/table.pb.h"

namespace nam::optimizer {

/// All columns of the driving table are to be read, as from rows that are stored one after the other.
void ReadWholeTuples(const TableRefs& tables, Plan& plan);

/// If the build side of `join` is partitioned by its join key in the same way as the driving table is by
/// the probe key: which of the driving table's partition keys that is. Then a partition of the driving
/// table needs one partition of the build side only; otherwise it needs all of them.
std::optional<int> MatchingKey(const Plan& plan, const Plan::Join& join, const TableRefs& tables);

/// Which server streams what of the driving table (I-Store, section 4.1). Cost is bytes to be moved: those of
/// the driving table and those of the build sides, which count again on every server that needs them.
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

/// Takes the better of two: the largest differencing method on single partitions (evenest), and runs of
/// partitions in order of their parts by the key of the largest build side, then by the others (least
/// replication). If the better one is uneven, because partitions are larger than what is fair, or few, the
/// same is tried with large ones cut into pieces, and taken where that spares the server that has most more
/// than the replication costs. Within a server, what is larger than a fraction of what is fair among its
/// `threads` is cut as well.
Assignment Assign(const Plan& plan, const TableRefs& tables, int servers, int threads = 1);

/// Of a driving table of records, whose parts are alike and come as pieces already: runs of them, of about as
/// many rows each.
Assignment AssignRecords(const Plan& plan, const TableRefs& tables,
                         const std::vector<partitioner::Piece>& pieces, int servers);

/// K-way number partitioning by the largest differencing method: the part of each item.
std::vector<int> LargestDifferencing(const std::vector<uint64_t>& costs, int parts);

}  // namespace nam::optimizer
